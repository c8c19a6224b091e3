package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// user is the user of one context, who follows it on one screen.
type user struct {
	soak    *soak
	context *client.Context
	kind    kind
	rand    *rand.Rand
	noise   *rand.ChaCha8 // for content that does not compress
	// paddingLeft is how many bytes of padding may still be sent: each request of a
	// context brings all of its messages to the model.
	paddingLeft int
	// asks are the turns that are read in the background, until they are cancelled,
	// and asking waits for their ends.
	asking sync.WaitGroup
	asks   []asked

	mu    sync.Mutex // guards what follows
	story story
	told  view
	news  chan struct{} // closed and replaced when there is something new
}

// asked is a message that was sent with Ask. Its sender learns that it was recorded,
// or lost, or that sending it failed.
type asked struct {
	key     string
	learned <-chan struct{}
	cancel  context.CancelFunc
}

const (
	// sendTimeout is how long a user waits for the answer to what they send.
	sendTimeout = 15 * time.Second
	// insistFor is how long they try again what has to succeed.
	insistFor = time.Minute
)

// converse uses a context until the faults end, waits until it rests, and checks
// it.
func (s *soak) converse(faults, rest context.Context, n int) error {
	u, err := s.newUser(n)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(rest)
	defer stop()
	followed := make(chan error, 1)
	go func() { followed <- u.follow(following) }()

	err = u.prepare(rest)
	for i := 0; err == nil && faults.Err() == nil; i++ {
		for range 1 + u.rand.IntN(u.kind.burst) {
			if err == nil {
				err = u.say(rest, fmt.Sprintf("%s-%d-%d", u.context.Name(), i, len(u.story.sent)))
			}
		}
		if err == nil {
			err = u.meddle(rest)
		}
		u.hesitate(faults)
	}
	if err == nil {
		err = u.finish(rest)
	}
	stop()
	if err := errors.Join(err, <-followed); err != nil {
		u.dump()
		return fmt.Errorf("%s: %w\n%s", u.context.Name(), err, tail(u.told.events))
	}
	return u.check(rest)
}

func (s *soak) newUser(n int) (*user, error) {
	opened, err := s.rig.Contexts.Open(contextName(n, s.options))
	if err != nil {
		return nil, err
	}
	source := rand.New(rand.NewPCG(s.options.seed, uint64(n)+1))
	var noise [32]byte
	for i := range noise {
		noise[i] = byte(source.IntN(256))
	}
	k := kindOf(n, s.options)
	padding := maxPadding
	if k.large {
		padding = maxLargePadding
	}
	return &user{
		soak: s, context: opened, kind: k, rand: source, noise: rand.NewChaCha8(noise),
		story: story{name: opened.Name(), policy: k.policy}, paddingLeft: padding, news: make(chan struct{}),
	}, nil
}

// prepare sets the delivery policy.
func (u *user) prepare(ctx context.Context) error {
	e := event.New(event.SetDeliveryPolicy{Policy: u.kind.policy})
	e.ClientEventID = u.context.Name() + "-policy"
	return u.insist(ctx, "set the delivery policy", func(ctx context.Context) error {
		_, err := u.context.Send(ctx, e)
		return err
	})
}

// insist tries again until something succeeds.
func (u *user) insist(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, insistFor)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, sendTimeout)
		err := try(attempt)
		cancel()
		if err == nil || !wait(ctx, 200*time.Millisecond) {
			return wrap(what, err)
		}
	}
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// wait reports whether ctx goes on.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Large inputs.
const (
	maxPadding       = 2 << 20
	maxLargePadding  = 16 << 20
	minLarge         = 64 << 10
	usualLarge       = 1_900_000
	maxLargeMessage  = 11_000_000 // in JSON, below wire.MaxStoredBytes
	maxLargeFile     = 16 << 20
	minPlain         = 1 << 10
	maxPlain         = 60 << 10
	largeShare       = 3 // a context with large inputs sends one in three
	hugeShare        = 10
	impatientShare   = 50
	interruptedShare = 8
)

// text is text that does not compress.
func (u *user) text(size int) string {
	data := make([]byte, size*3/4+3)
	_, _ = u.noise.Read(data) // never an error
	return base64.RawStdEncoding.EncodeToString(data)[:size]
}

// padding is what the next message has beside its words.
func (u *user) padding() string {
	size := 0
	switch {
	case u.kind.signals:
		size = minPlain + u.rand.IntN(maxPlain-minPlain)
	case u.kind.large && u.rand.IntN(largeShare) == 0:
		size = minLarge + u.rand.IntN(usualLarge-minLarge)
		if u.rand.IntN(hugeShare) == 0 {
			size = usualLarge + u.rand.IntN(maxLargeMessage-usualLarge)
		}
	case u.kind.terminates && !u.kind.resets && u.rand.IntN(4) == 0:
		// Longer than wire.MaxAppendBytes, so that Temporal stores it before a worker
		// records it, and a termination can lose it.
		size = minLarge + u.rand.IntN(minLarge)
	case u.kind.burst > 10:
		size = u.rand.IntN(4 << 10)
	}
	size = min(size, u.paddingLeft)
	u.paddingLeft -= size
	if size >= minLarge {
		u.soak.counts.large.Add(1)
	}
	return u.text(size)
}

// file is an attachment for the next message; nil as a rule.
func (u *user) file() []byte {
	if !u.kind.large || u.rand.IntN(largeShare) > 0 {
		return nil
	}
	size := minLarge + u.rand.IntN(usualLarge-minLarge)
	if u.rand.IntN(hugeShare) == 0 {
		size = usualLarge + u.rand.IntN(maxLargeFile-usualLarge)
	}
	data := make([]byte, size)
	_, _ = u.noise.Read(data) // never an error
	u.soak.counts.large.Add(1)
	return data
}

// say sends a message, and now and then an interruption before it. Sometimes the
// user is too impatient to hear that it was taken.
func (u *user) say(ctx context.Context, key string) error {
	if u.rand.IntN(interruptedShare) == 0 {
		u.soak.counts.asked.Add(1)
		asking, cancel := context.WithTimeout(ctx, sendTimeout)
		// An error means that there is no run, or that Temporal is away.
		_ = u.context.Interrupt(asking)
		cancel()
	}
	text := rig.Message{
		Key: key, Tokens: 1 + u.rand.IntN(u.kind.tokens), Every: time.Duration(u.rand.Int64N(int64(u.kind.every))), Padding: u.padding(),
	}.String()
	e := event.New(event.UserMessage{Content: text})
	e.ClientEventID = key
	events := []event.Event{e}
	m := message{key: key, content: sha256.Sum256([]byte(text))}
	if data := u.file(); data != nil {
		m.file = blobs.RefOf(data)
		file := event.New(event.FileAttachment{
			Source: event.Source{Type: event.SourceBlob, Data: data}, MediaType: "application/pdf", FileName: key + ".pdf",
		})
		file.ClientEventID = fileID(key)
		events = []event.Event{file, e}
	}
	timeout := sendTimeout
	if u.rand.IntN(impatientShare) == 0 {
		timeout = time.Duration(u.rand.Int64N(int64(5 * time.Millisecond)))
	}
	if u.kind.terminates && u.rand.IntN(2) == 0 {
		return u.ask(ctx, m, events)
	}
	sending, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	if u.kind.signals {
		m.outcome, err = u.signal(sending, text, key)
	} else {
		m.outcome, m.eventID, err = u.send(sending, events)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	u.add(m)
	return nil
}

// add adds a message to the story and returns its number.
func (u *user) add(m message) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.story.sent = append(u.story.sent, m)
	return len(u.story.sent) - 1
}

func (u *user) send(ctx context.Context, events []event.Event) (outcome, string, error) {
	sent, err := u.context.Send(ctx, events...)
	switch {
	case errors.Is(err, client.ErrRefused):
		return refused, "", nil
	case err != nil:
		return unsure, "", err
	case sent.EventIDs == nil:
		return stored, "", nil
	default:
		return recorded, sent.EventIDs[len(events)-1], nil
	}
}

// signal sends a message as the temporal command does, without a blob store.
func (u *user) signal(ctx context.Context, text, key string) (outcome, error) {
	input := map[string]any{"_tag": "UserMessage", "content": text, "clientEventId": key}
	id := wire.WorkflowID(u.context.Name())
	_, err := u.soak.rig.Temporal.SignalWithStartWorkflow(ctx, id, wire.SignalEvent, input,
		sdkclient.StartWorkflowOptions{ID: id, TaskQueue: wire.TaskQueue}, wire.WorkflowType)
	if err != nil {
		return unsure, err
	}
	u.soak.counts.signals.Add(1)
	return stored, nil
}

// ask sends a message and reads its turn. It returns when the message is recorded,
// or after a moment, and then goes on in the background. Now and then it terminates
// the run in that moment.
func (u *user) ask(ctx context.Context, m message, events []event.Event) error {
	m.unordered = true
	n := u.add(m)
	known := make(chan struct{})
	reading, cancel := context.WithCancel(ctx)
	learn := func(m message) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.story.sent[n] = m
	}
	u.asks = append(u.asks, asked{m.key, known, cancel})
	u.asking.Go(func() {
		defer cancel()
		isKnown := false
		defer func() {
			if !isKnown {
				close(known)
			}
		}()
		for e, err := range u.context.Ask(reading, events...) {
			switch {
			case isKnown:
			case errors.Is(err, client.ErrLost):
				m.outcome = lost
				learn(m)
			case err == nil && e.ClientEventID == m.key:
				m.outcome, m.eventID = recorded, e.ID
				learn(m)
				isKnown = true
				close(known)
			}
		}
	})
	moment := time.Second
	hurries := u.rand.IntN(4) == 0
	if hurries {
		moment = time.Duration(u.rand.Int64N(int64(50 * time.Millisecond)))
	}
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-known:
	case <-timer.C:
	case <-ctx.Done():
	}
	if hurries {
		return u.terminate(ctx)
	}
	return nil
}

// hesitate waits before the next message: not at all, in the middle of the answer,
// or until the context rests.
func (u *user) hesitate(ctx context.Context) {
	if u.kind.large {
		wait(ctx, time.Duration(u.rand.Int64N(int64(2*time.Second))))
	}
	switch u.rand.IntN(4) {
	case 0:
	case 1:
		wait(ctx, time.Duration(u.rand.Int64N(int64(300*time.Millisecond))))
	default:
		u.awaitRest(ctx)
	}
}

// follow notes what the user is told, until ctx ends.
func (u *user) follow(ctx context.Context) error {
	for e, err := range u.context.Follow(ctx, client.FollowOptions{Deltas: true}) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("follow: %w", err)
		}
		if e.Tag().Class() == event.ClassEphemeral {
			continue
		}
		switch e.Body.(type) {
		case event.LLMRequestCompleted:
			u.soak.counts.answered.Add(1)
		case event.LLMRequestInterrupted:
			u.soak.counts.interrupted.Add(1)
		case event.LLMRequestFailed:
			u.soak.counts.failed.Add(1)
		}
		u.mu.Lock()
		ok := u.told.tell(e)
		close(u.news)
		u.news = make(chan struct{})
		u.mu.Unlock()
		if !ok {
			return fmt.Errorf("follow: %s came after event %d", e.ID, len(u.told.events))
		}
	}
	return nil
}

// awaitRest waits until the user was told that all they sent is settled.
func (u *user) awaitRest(ctx context.Context) bool {
	u.mu.Lock()
	l := u.story.ledger()
	for {
		if l.rewinds != u.told.rewinds {
			l = u.story.ledger()
			l.rewinds = u.told.rewinds
		}
		for _, e := range u.told.events[l.read:] {
			l.note(e)
		}
		news := u.news
		u.mu.Unlock()
		if l.rests() {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
		u.mu.Lock()
	}
}

// finish sends a last message, which shows that the context goes on, and waits
// until all is settled.
func (u *user) finish(ctx context.Context) error {
	n := 0
	err := u.insist(ctx, "send the last message", func(ctx context.Context) error {
		// Each time another message: one that was refused may have been stored, too.
		n++
		text := rig.Message{Key: fmt.Sprintf("%s-last-%d", u.context.Name(), n), Tokens: 3}.String()
		e := event.New(event.UserMessage{Content: text})
		e.ClientEventID = rig.KeyOf(text)
		m := message{key: e.ClientEventID, content: sha256.Sum256([]byte(text)), unordered: true}
		var err error
		m.outcome, m.eventID, err = u.send(ctx, []event.Event{e})
		u.add(m)
		if m.outcome == refused {
			err = client.ErrRefused // until the answer before has ended
		}
		return err
	})
	if err != nil {
		return err
	}
	if !u.awaitRest(ctx) {
		return context.Cause(ctx)
	}
	for _, asked := range u.asks {
		select {
		case <-asked.learned:
		case <-ctx.Done():
			return fmt.Errorf("the sender of %s never learned what became of it: %w", asked.key, context.Cause(ctx))
		}
		asked.cancel()
	}
	u.asking.Wait()
	return nil
}
