package main

import (
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
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

const (
	reason = "soak" // of closes and terminations
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

// user uses a context until the faults end.
type user struct {
	*soak
	context *client.Context
	kind    kind
	rand    *rand.Rand
	padding int // bytes sent

	mu         sync.Mutex // guards the fields below
	journal    journal
	followed   []event.Event
	transcript *transcript.Patcher
	changed    chan struct{} // closed and replaced after each event
}

func (s *soak) runUser(faults, rest context.Context, n int) error {
	k := kinds[n%len(kinds)]
	opened, err := s.Contexts.Open(fmt.Sprintf("soak-%03d-%s", n, k.name))
	if err != nil {
		return err
	}
	u := &user{
		soak: s, context: opened, kind: k, rand: s.random(uint64(n)), transcript: transcript.NewPatcher(), changed: make(chan struct{}),
		journal: journal{policy: k.policy},
	}
	following, stop := context.WithCancel(rest)
	defer stop()
	followed := make(chan error, 1)
	go func() { followed <- u.follow(following) }()
	err = u.use(faults, rest)
	stop()
	if err := errors.Join(err, <-followed); err != nil {
		return fmt.Errorf("%s: %w\n%s", opened.Name(), err, tail(u.followed))
	}
	return u.check(rest)
}

func (u *user) use(faults, rest context.Context) error {
	settings := []event.Event{event.New(event.SetDeliveryPolicy{Policy: u.kind.policy})}
	if u.kind.calls {
		settings = append(settings, toolSettings())
	}
	settings[0].ClientEventID = u.context.Name() + "-settings"
	err := retry(rest, attemptTimeout, func(ctx context.Context) error {
		_, err := u.context.Send(ctx, settings...)
		return err
	})
	for i := 0; err == nil && faults.Err() == nil; i++ {
		for n := range 1 + u.rand.IntN(u.kind.burst) {
			u.sendMessage(rest, fmt.Sprintf("%s-%d-%d", u.context.Name(), i, n))
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
		m := rig.Message{Key: fmt.Sprintf("%s-last-%d", u.context.Name(), n), Tokens: 3}
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

// send sends an input and adds it to the journal.
func (u *user) send(ctx context.Context, key string, body event.Body) outcome {
	e := event.New(body)
	e.ClientEventID = key
	m := input{key: key, content: contentOf(body), isAnswer: e.Tag() != event.TagUserMessage}
	u.mu.Lock()
	n := len(u.journal.sent)
	u.journal.sent = append(u.journal.sent, m)
	u.mu.Unlock()
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
	err = u.Temporal.SignalWorkflow(ctx, wire.WorkflowID(u.context.Name()), "", wire.SignalEvent, json.RawMessage(data))
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
		err := u.Temporal.TerminateWorkflow(ctx, wire.WorkflowID(u.context.Name()), "", reason)
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

// follow follows the context until ctx ends, and answers calls.
func (u *user) follow(ctx context.Context) error {
	var answers sync.WaitGroup
	defer answers.Wait()
	asked := map[string]bool{}
	for e, err := range u.context.Follow(ctx, client.FollowOptions{Deltas: true}) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("follow: %w", err)
		}
		u.mu.Lock()
		u.transcript.Apply(e)
		if e.Tag().Class() != event.ClassEphemeral {
			u.followed = append(u.followed, e)
		}
		close(u.changed)
		u.changed = make(chan struct{})
		u.mu.Unlock()
		switch body := e.Body.(type) {
		case event.ToolCall:
			if body.ToolName == toolAsk {
				answers.Go(func() { u.answer(ctx, body.ToolCallID, resultOf) })
			}
		case event.ApprovalRequested:
			if !asked[body.ToolCallID] {
				asked[body.ToolCallID] = true
				answers.Go(func() { u.answer(ctx, body.ToolCallID, u.decisionOn) })
			}
		}
	}
	return nil
}

// answer sends an answer to a call after a moment. Some calls expire, and some answers are sent twice.
func (u *user) answer(ctx context.Context, callID string, with func(callID string, chance uint64) event.Body) {
	hash := fnv.New64a()
	fmt.Fprint(hash, callID, u.options.seed)
	chance := hash.Sum64()
	body := with(callID, chance)
	if body == nil || !pause.For(ctx, time.Duration(chance%300)*time.Millisecond) {
		return
	}
	for n := range 1 + chance/1000%8/7 {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
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
		decided.Parameters = encode(arguments{Key: u.context.Name() + "-" + callID + "-edited"})
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

func tail(log []event.Event) string {
	var b strings.Builder
	for _, e := range log[max(0, len(log)-30):] {
		fmt.Fprintf(&b, "  %s\n", event.Redact(string(encode(e)), 300))
	}
	return b.String()
}
