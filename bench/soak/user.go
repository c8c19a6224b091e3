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

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

type user struct {
	soak    *soak
	context *client.Context
	kind    kind
	rand    *rand.Rand
	noise   *rand.ChaCha8 // for incompressible content
	// paddingLeft bounds the padding still to be sent, in bytes, because each request
	// contains all messages.
	paddingLeft int
	// asks are the turns read in the background; asking waits for them.
	asking sync.WaitGroup
	asks   []asked
	// limit is the budget of the context in tokens; 0: none.
	limit    int64
	answerer *answerer

	mu       sync.Mutex // guards the fields below
	journal  journal
	followed view
	changed  chan struct{} // closed and replaced after each change
}

type asked struct {
	key string
	// known is closed when Ask has reported the outcome.
	known  <-chan struct{}
	cancel context.CancelFunc
}

const (
	sendTimeout = 15 * time.Second
	// retryFor bounds the attempts of operations that have to succeed.
	retryFor = time.Minute
)

// runUser uses a context until the faults end, waits until it is idle, and checks it.
func (s *soak) runUser(faults, rest context.Context, n int) error {
	u, err := s.newUser(n)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(rest)
	defer stop()
	followed := make(chan error, 1)
	go func() { followed <- u.follow(following) }()
	answering, stopAnswering := context.WithCancel(following)
	defer stopAnswering()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		u.answerer.run(answering)
	}()

	err = u.prepare(rest)
	for i := 0; err == nil && faults.Err() == nil; i++ {
		for range 1 + u.rand.IntN(u.kind.burst) {
			if err == nil {
				err = u.sendMessage(rest, fmt.Sprintf("%s-%d-%d", u.context.Name(), i, len(u.journal.sent)))
			}
		}
		if err == nil {
			err = u.disrupt(rest)
		}
		u.think(faults)
	}
	if err == nil {
		err = u.finish(rest)
	}
	stopAnswering()
	<-answered
	if err == nil && !u.awaitIdle(rest) { // for the last answers to calls
		err = context.Cause(rest)
	}
	stop()
	if err := errors.Join(err, <-followed); err != nil {
		u.dump()
		return fmt.Errorf("%s: %w\n%s%s", u.context.Name(), err, tail(u.followed.events), u.unread())
	}
	return u.check(rest)
}

func (s *soak) newUser(n int) (*user, error) {
	k := kindOf(n, s.options)
	contexts := s.rig.Contexts.Client
	if k.isAgent() {
		contexts = s.agents
	}
	opened, err := contexts.Open(contextName(n, s.options))
	if err != nil {
		return nil, err
	}
	source := rand.New(rand.NewPCG(s.options.seed, uint64(n)+1))
	var noise [32]byte
	for i := range noise {
		noise[i] = byte(source.IntN(256))
	}
	padding := maxPadding
	if k.large {
		padding = maxLargePadding
	}
	u := &user{
		soak: s, context: opened, kind: k, rand: source, noise: rand.NewChaCha8(noise),
		journal: journal{name: opened.Name(), policy: k.policy}, paddingLeft: padding, changed: make(chan struct{}),
	}
	u.answerer = newAnswerer(u, s.options.seed+uint64(n))
	return u, nil
}

func (u *user) taskQueue() string {
	if u.kind.isAgent() {
		return agentQueue
	}
	return wire.TaskQueue
}

func (u *user) prepare(ctx context.Context) error {
	settings := []event.Event{event.New(event.SetDeliveryPolicy{Policy: u.kind.policy})}
	if u.kind.calls {
		expiry := 1000 + u.rand.Int64N(5000)
		settings = append(settings, event.New(agent.Settings(event.SetTools{
			MaxSteps: new(2 + u.rand.IntN(6)), Parallel: new(1 + u.rand.IntN(4)), ExpiryMs: &expiry,
		})))
	}
	if err := u.set(ctx, "settings", settings...); err != nil {
		return err
	}
	return u.raiseBudget(ctx)
}

// set sends settings of the context. A termination may lose them.
func (u *user) set(ctx context.Context, key string, settings ...event.Event) error {
	settings[0].ClientEventID = u.context.Name() + "-" + key
	return u.retry(ctx, "send the "+key, func(ctx context.Context) error {
		_, err := u.context.Send(ctx, settings...)
		return err
	})
}

// raiseBudget allows some further requests.
func (u *user) raiseBudget(ctx context.Context) error {
	if !u.kind.budgets {
		return nil
	}
	u.limit += 200 + u.rand.Int64N(800)
	return u.set(ctx, fmt.Sprintf("budget-%d", u.limit), event.New(event.BudgetSet{Tokens: new(u.limit)}))
}

func (u *user) retry(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, sendTimeout)
		err := try(attempt)
		cancel()
		if err == nil || !pause.For(ctx, 200*time.Millisecond) {
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

const (
	maxPadding       = 2 << 20
	maxLargePadding  = 16 << 20
	minLarge         = 64 << 10
	usualLarge       = 1_900_000
	maxLargeMessage  = 11_000_000 // in JSON, below wire.MaxStoredBytes
	maxLargeFile     = 16 << 20
	minPlain         = 1 << 10
	maxPlain         = 60 << 10
	largeShare       = 3 // one in three inputs of a context with large inputs
	hugeShare        = 10
	impatientShare   = 50
	interruptedShare = 8
)

func (u *user) text(size int) string {
	data := make([]byte, size*3/4+3)
	_, _ = u.noise.Read(data) // never an error
	return base64.RawStdEncoding.EncodeToString(data)[:size]
}

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
		// More than wire.MaxAppendBytes, so that Temporal stores the message before a
		// worker records it, and a termination can lose it.
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

// Some messages follow an interrupt; some have a timeout that leaves the outcome unknown.
func (u *user) sendMessage(ctx context.Context, key string) error {
	if u.rand.IntN(interruptedShare) == 0 {
		u.soak.counts.interrupts.Add(1)
		asking, cancel := context.WithTimeout(ctx, sendTimeout)
		// An error means that there is no run or that Temporal is unreachable.
		_ = u.context.Interrupt(asking)
		cancel()
	}
	text := rig.Message{
		Key: key, Tokens: 1 + u.rand.IntN(u.kind.tokens), Every: time.Duration(u.rand.Int64N(int64(u.kind.every))),
		Script: u.script(key), Padding: u.padding(),
	}.String()
	body := event.UserMessage{Content: text}
	if u.kind.budgets {
		body.Settings = &event.RequestSettings{MaxTokens: new(u.kind.tokens), Labels: map[string]string{agent.Label: agent.LabelValue}}
	}
	e := event.New(body)
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
		m.outcome, err = u.signalEvent(sending, e)
	} else {
		m.outcome, m.eventID, err = u.send(sending, events)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	u.add(m)
	return nil
}

func (u *user) add(m message) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.journal.sent = append(u.journal.sent, m)
	return len(u.journal.sent) - 1
}

func (u *user) send(ctx context.Context, events []event.Event) (outcome, string, error) {
	sent, err := u.context.Send(ctx, events...)
	switch {
	case errors.Is(err, client.ErrRefused):
		return rejected, "", nil
	case err != nil:
		return unknown, "", err
	case sent.EventIDs == nil:
		return stored, "", nil
	default:
		return recorded, sent.EventIDs[len(events)-1], nil
	}
}

// ask returns when the outcome is known, or after a moment, and reads the turn in the background.
// Before it returns, it sometimes terminates the run.
func (u *user) ask(ctx context.Context, m message, events []event.Event) error {
	m.unordered = true
	n := u.add(m)
	known := make(chan struct{})
	reading, cancel := context.WithCancel(ctx)
	learn := func(m message) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.journal.sent[n] = m
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
	terminatesNow := u.rand.IntN(4) == 0
	if terminatesNow {
		moment = time.Duration(u.rand.Int64N(int64(50 * time.Millisecond)))
	}
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-known:
	case <-timer.C:
	case <-ctx.Done():
	}
	if terminatesNow {
		return u.terminate(ctx)
	}
	return nil
}

// think returns at once, pauses for a part of the answer, or waits until the context is idle.
func (u *user) think(ctx context.Context) {
	if u.kind.large {
		pause.For(ctx, time.Duration(u.rand.Int64N(int64(2*time.Second))))
	}
	switch u.rand.IntN(4) {
	case 0:
	case 1:
		pause.For(ctx, time.Duration(u.rand.Int64N(int64(300*time.Millisecond))))
	default:
		u.awaitIdle(ctx)
	}
}

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
		u.answerer.add(e)
		u.mu.Lock()
		ok := u.followed.add(e)
		close(u.changed)
		u.changed = make(chan struct{})
		u.mu.Unlock()
		if !ok {
			return fmt.Errorf("follow: received %s after event %d", e.ID, len(u.followed.events))
		}
	}
	return nil
}

func (u *user) awaitIdle(ctx context.Context) bool {
	u.mu.Lock()
	p := u.journal.progress()
	for {
		if p.rewinds != u.followed.rewinds {
			p = u.journal.progress()
			p.rewinds = u.followed.rewinds
		}
		for _, e := range u.followed.events[p.read:] {
			p.add(e)
		}
		changed := u.changed
		u.mu.Unlock()
		if p.isIdle() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
		u.mu.Lock()
	}
}

// finish sends a last message, to check that the context still answers.
func (u *user) finish(ctx context.Context) error {
	n := 0
	err := u.retry(ctx, "send the last message", func(ctx context.Context) error {
		// Each attempt has its own key, because a rejected message may also be stored.
		n++
		text := rig.Message{Key: fmt.Sprintf("%s-last-%d", u.context.Name(), n), Tokens: 3}.String()
		e := event.New(event.UserMessage{Content: text})
		e.ClientEventID = rig.KeyOf(text)
		m := message{key: e.ClientEventID, content: sha256.Sum256([]byte(text)), unordered: true}
		var err error
		m.outcome, m.eventID, err = u.send(ctx, []event.Event{e})
		u.add(m)
		if m.outcome == rejected {
			err = client.ErrRefused // retry until the previous answer has ended
		}
		return err
	})
	if err != nil {
		return err
	}
	if !u.awaitIdle(ctx) {
		return context.Cause(ctx)
	}
	for _, asked := range u.asks {
		select {
		case <-asked.known:
		case <-ctx.Done():
			return fmt.Errorf("the sender of %s never learned its outcome: %w", asked.key, context.Cause(ctx))
		}
		asked.cancel()
	}
	u.asking.Wait()
	return nil
}
