package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

const (
	// idleTimeout bounds the wait for an idle context after the last fault, which may be a restart of Temporal.
	idleTimeout = 3 * time.Minute
	reason      = "soak" // of closes and terminations
	// disruptShare is the average number of rounds between two closes or terminations.
	disruptShare = 6
	// Each request contains all messages of a context, so their size in total is bounded.
	maxPadding = 16 << 20
	minLarge   = 64 << 10
	maxLarge   = 4 << 20
	maxPlain   = 60 << 10
)

// kind is a kind of context and of its user.
type kind struct {
	name   string
	policy event.Policy
	burst  int
	tokens int // maximum length of an answer
	// large adds large messages; signals sends plain signals of at most 60 KB.
	large, signals bool
	// What the user does to the context at random.
	closes, terminates bool
	calls              bool
	hostile            bool
}

// every is the maximum time between tokens.
const every = 20 * time.Millisecond

var kinds = []kind{
	{name: "interrupt", policy: event.PolicyInterrupt, burst: 2, tokens: 40},
	{name: "queue", policy: event.PolicyQueue, burst: 3, tokens: 40},
	{name: "reject", policy: event.PolicyReject, burst: 2, tokens: 40},
	{name: "large", policy: event.PolicyInterrupt, burst: 2, tokens: 40, large: true},
	{name: "signals", policy: event.PolicyQueue, burst: 3, tokens: 40, signals: true},
	{name: "long", policy: event.PolicyQueue, burst: 12, tokens: 400},
	{name: "closes", policy: event.PolicyInterrupt, burst: 2, tokens: 40, closes: true},
	{name: "terminates", policy: event.PolicyQueue, burst: 3, tokens: 100, closes: true, terminates: true},
	{name: "calls", policy: event.PolicyInterrupt, burst: 2, tokens: 20, calls: true},
	{name: "steered", policy: event.PolicySteer, burst: 2, tokens: 20, calls: true},
	{name: "agent", policy: event.PolicyQueue, burst: 2, tokens: 40, closes: true, calls: true},
}

// user uses a context, and notes what it did in its journal.
type user struct {
	*soak
	context  *client.Context
	id       string // of the workflow
	number   int
	kind     kind
	life     context.Context // of followers, and of connections that stay open
	rand     *rand.Rand
	padding  int // bytes sent
	answered map[string]bool

	// Of hostile input.
	step      int
	trail     []string
	forks     []string
	continued int

	mu       sync.Mutex // guards the fields below
	journal  journal
	followed []event.Event
	changed  chan struct{} // closed and replaced after each event
	problems problems
}

func (s *soak) runUser(ctx, faults context.Context, n int) error {
	k := kinds[n%len(kinds)]
	if s.options.hostile {
		k = kind{name: "hostile", hostile: true}
	}
	opened, err := s.Contexts.Open(fmt.Sprintf("soak-%d-%03d-%s", s.options.seed, n, k.name))
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	u := &user{
		soak: s, context: opened, id: wire.WorkflowID(opened.Name()), number: n, kind: k, life: life, rand: s.random(uint64(n)),
		changed: make(chan struct{}), journal: journal{policy: k.policy}, answered: map[string]bool{},
	}
	var background sync.WaitGroup
	defer background.Wait()
	defer end()
	background.Go(func() { u.follow(&background) })
	background.Go(u.view)
	if k.hostile {
		u.attack(ctx)
	} else {
		err = u.use(faults, ctx)
	}
	if err == nil {
		err = u.check(ctx)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := errors.Join(append(u.problems, err)...); err != nil {
		return fmt.Errorf("%s: %w\n%s%s\nrepeat: -seed %d -context %d", u.name(), err, tail(u.followed), strings.Join(u.trail, "\n"), s.options.seed, n)
	}
	return nil
}

// use sends messages until the faults end, and then until one more has an answer.
func (u *user) use(faults, ctx context.Context) error {
	until, _ := faults.Deadline()
	rest, cancel := context.WithDeadlineCause(ctx, until.Add(idleTimeout), fmt.Errorf("not idle %v after the last fault", idleTimeout))
	defer cancel()
	settings := []event.Event{event.New(event.SetDeliveryPolicy{Policy: u.kind.policy})}
	if u.kind.calls {
		settings = append(settings, toolSettings())
	}
	settings[0].ClientEventID = u.name() + "-settings"
	err := retry(rest, attemptTimeout, func(ctx context.Context) error {
		_, err := u.context.Send(ctx, settings...)
		return err
	})
	for i := 0; err == nil && faults.Err() == nil; i++ {
		for n := range 1 + u.rand.IntN(u.kind.burst) {
			u.sendMessage(rest, fmt.Sprintf("%s-%d-%d", u.name(), i, n))
		}
		if u.kind.closes && u.rand.IntN(disruptShare) == 0 {
			u.close(rest)
		}
		if u.kind.terminates && u.rand.IntN(disruptShare) == 0 {
			err = u.terminate(rest)
		}
		u.think(faults)
	}
	if err != nil {
		return err
	}
	// The context still answers. Each attempt has its own key, because a rejected message may also be stored.
	n := 0
	err = retry(rest, attemptTimeout, func(ctx context.Context) error {
		n++
		m := rig.Message{Key: fmt.Sprintf("%s-last-%d", u.name(), n), Tokens: 3}
		if sent := u.send(ctx, m.Key, event.UserMessage{Content: m.String()}); sent == unknown || sent == rejected {
			return fmt.Errorf("the last message is %s", sent)
		}
		return nil
	})
	if err == nil && !u.awaitIdle(rest) {
		err = context.Cause(rest)
	}
	return err
}

// sendMessage sends a message. Some follow an interrupt; some have a timeout that leaves the outcome unknown.
func (u *user) sendMessage(ctx context.Context, key string) {
	if u.rand.IntN(8) == 0 {
		interrupting, cancel := context.WithTimeout(ctx, attemptTimeout)
		_ = u.context.Interrupt(interrupting) // an error means that there is no run or that Temporal is unreachable
		cancel()
	}
	m := rig.Message{
		Key: key, Tokens: 1 + u.rand.IntN(u.kind.tokens), Every: time.Duration(u.rand.Int64N(int64(every))), Padding: u.text(),
	}
	if u.kind.calls && u.rand.IntN(3) > 0 {
		m.Script.Steps = u.steps(key)
	}
	timeout := attemptTimeout
	if u.rand.IntN(50) == 0 {
		timeout = time.Duration(u.rand.Int64N(int64(5 * time.Millisecond)))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u.send(ctx, key, event.UserMessage{Content: m.String()})
}

// text returns incompressible text.
func (u *user) text() string {
	size := 0
	switch {
	case u.kind.signals, u.kind.terminates: // with terminates, some are stored before they are recorded
		size = u.rand.IntN(maxPlain)
	case u.kind.large && u.rand.IntN(3) == 0:
		size = minLarge + u.rand.IntN(maxLarge-minLarge)
		u.counts.add("large", 1)
	}
	if u.padding += size; u.padding > maxPadding {
		return ""
	}
	data := make([]byte, size*3/4)
	for i := range data {
		data[i] = byte(u.rand.Uint32())
	}
	return base64.RawStdEncoding.EncodeToString(data)
}

// steps returns the calls of the answers to a message.
func (u *user) steps(key string) (steps [][]rig.Call) {
	for step := range 1 + u.rand.IntN(4) {
		var calls []rig.Call
		for i := range 1 + u.rand.IntN(3) {
			a := arguments{Key: fmt.Sprintf("%s-%d-%d", key, step, i), Ms: u.rand.IntN(2) * u.rand.IntN(1500)}
			// The id is unique, an id that other calls share, or empty.
			id := []string{a.Key, "call_0", ""}[u.rand.IntN(3)]
			name := []string{toolOnce, toolGuarded, toolGuarded, toolAsk, "nothing"}[u.rand.IntN(5)]
			calls = append(calls, rig.Call{ID: id, Name: name, Arguments: string(encode(a))})
		}
		steps = append(steps, calls)
	}
	return steps
}

func (u *user) name() string { return u.context.Name() }

func (u *user) fail(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.problems.add(format, args...)
}

// accept adds input to the journal and returns its index there.
func (u *user) accept(in input) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	in.first = cmp.Or(in.first, in.key)
	u.journal.sent = append(u.journal.sent, in)
	return len(u.journal.sent) - 1
}

// send sends an input and adds it to the journal.
func (u *user) send(ctx context.Context, key string, body event.Body) outcome {
	e := event.New(body)
	e.ClientEventID = key
	m := input{key: key, first: key, content: contentOf(body), isAnswer: e.Tag() != event.TagUserMessage}
	n := u.accept(m)
	by := u.context.Send
	if u.kind.signals {
		by = u.signal
	}
	sent, err := by(ctx, e)
	switch {
	case errors.Is(err, client.ErrRefused):
		m.outcome = rejected
	case err != nil:
		m.outcome = unknown
	case len(sent.EventIDs) == 0:
		m.outcome = stored
	default:
		m.outcome, m.eventID = recorded, sent.EventIDs[0]
	}
	u.counts.add(m.outcome.String(), 1)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.journal.sent[n] = m
	return m.outcome
}

// signal sends a plain signal, as the temporal command does. A context without an open run receives no signal.
func (u *user) signal(ctx context.Context, events ...event.Event) (client.Receipt, error) {
	data, err := events[0].MarshalJSON()
	if err != nil {
		return client.Receipt{}, err
	}
	err = u.Temporal.SignalWorkflow(ctx, u.id, "", wire.SignalEvent, json.RawMessage(data))
	if errors.As(err, new(*serviceerror.NotFound)) {
		return u.context.Send(ctx, events...)
	}
	return client.Receipt{}, err
}

func (u *user) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	u.journal.closes++ // even if the outcome is unknown
	if err := u.context.Close(ctx, reason); err == nil {
		u.counts.add("closed", 1)
	}
}

func (u *user) terminate(ctx context.Context) error {
	err := retry(ctx, attemptTimeout, func(ctx context.Context) error {
		err := u.Temporal.TerminateWorkflow(ctx, u.id, "", reason)
		if errors.As(err, new(*serviceerror.NotFound)) {
			return nil // closed
		}
		return err
	})
	u.counts.add("terminated", 1)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.journal.terminations++
	return err
}

// think returns at once, pauses for a part of the answer, or waits until the context is idle.
func (u *user) think(ctx context.Context) {
	switch u.rand.IntN(4) {
	case 0:
	case 1:
		pause.For(ctx, time.Duration(u.rand.Int64N(int64(300*time.Millisecond))))
	default:
		u.awaitIdle(ctx)
	}
}

// follow keeps the log until the life of the user ends, and answers calls in the background.
func (u *user) follow(background *sync.WaitGroup) {
	for u.life.Err() == nil {
		for e, err := range u.context.Follow(u.life, client.FollowOptions{Deltas: true}) {
			switch {
			case err == nil:
				u.received(e, background)
			case u.life.Err() != nil:
			case u.kind.hostile && errors.Is(err, client.ErrOtherStore): // the start of a stranger, until a worker opens the context
				pause.For(u.life, 200*time.Millisecond)
			default:
				u.fail("follow: %w", err)
				return
			}
		}
	}
}

func (u *user) received(e event.Event, background *sync.WaitGroup) {
	if e.ID == "" { // ephemeral
		return
	}
	u.mu.Lock()
	if n := event.Counter(e.ID); u.kind.hostile && n <= len(u.followed) { // a reset
		u.followed = u.followed[:n-1]
	}
	u.followed = append(u.followed, e)
	close(u.changed)
	u.changed = make(chan struct{})
	u.mu.Unlock()
	if u.kind.hostile {
		return
	}
	switch body := e.Body.(type) {
	case event.ToolCall:
		if body.ToolName == toolAsk {
			background.Go(func() { u.answer(body.ToolCallID, resultOf) })
		}
	case event.ApprovalRequested:
		if !u.answered[body.ToolCallID] {
			u.answered[body.ToolCallID] = true
			background.Go(func() { u.answer(body.ToolCallID, u.decisionOn) })
		}
	}
}

// answer sends an answer to a call after a moment. Some calls expire, and some answers are sent twice.
func (u *user) answer(callID string, with func(callID string, chance uint64) event.Body) {
	hash := fnv.New64a()
	fmt.Fprint(hash, callID, u.options.seed)
	chance := hash.Sum64()
	body := with(callID, chance)
	if body == nil || !pause.For(u.life, time.Duration(chance%300)*time.Millisecond) {
		return
	}
	for n := range 1 + chance/1000%8/7 {
		ctx, cancel := context.WithTimeout(u.life, attemptTimeout)
		u.send(ctx, fmt.Sprintf("%s-answer-%d", callID, n), body)
		cancel()
	}
}

func resultOf(callID string, chance uint64) event.Body {
	switch chance % 6 {
	case 0:
		return nil // it expires
	case 1:
		return event.ToolResult{ToolCallID: callID, Error: json.RawMessage(`"no answer"`), IsError: true}
	}
	return event.ToolResult{ToolCallID: callID, Value: encode("answer to " + callID)}
}

func (u *user) decisionOn(callID string, chance uint64) event.Body {
	decided := event.ApprovalDecided{ToolCallID: callID, Decision: event.Approve, DecidedBy: "soak"}
	switch chance % 6 {
	case 0:
		return nil // it expires
	case 1:
		decided.Decision, decided.Reason = event.Deny, "no"
	case 2:
		decided.Parameters = encode(arguments{Key: u.name() + "-" + callID + "-edited"})
	}
	return decided
}

func (u *user) awaitIdle(ctx context.Context) bool {
	p := progress{}
	for {
		u.mu.Lock()
		for _, e := range u.followed[p.read:] {
			p.add(e)
		}
		isIdle := p.isIdle() && u.journal.missing(p) == ""
		changed := u.changed
		u.mu.Unlock()
		if isIdle {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
