package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/clienttest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// fakeContext is a scripted context in memory with one reply per input. It fails the test on an
// unexpected input.
type fakeContext struct {
	*clienttest.Log
	t       *testing.T
	missing bool
	// unrecorded means that the context exists without an event.
	unrecorded bool
	// replies are recorded after the inputs, in order.
	replies [][]event.Body
	// answering is returned by State; onState is called first.
	answering bool
	onState   func()
	// openCalls replaces the calls of the request that State returns; nil keeps those of the log.
	openCalls []reducer.Call
	// err is returned by all methods after the last reply.
	err          error
	verification client.Verification
	// take replaces the script if the number of inputs varies. Send returns its error and then
	// records nothing.
	take func(events []event.Event) error
	// slow is called before an input is recorded.
	slow func()
	// slowAfter is called before the event of Ask with this index is yielded.
	slowAfter map[int]func()
	// unattended returns since when an answer waits for a worker; nil: none does.
	unattended func() time.Time
	// signals simulates inputs sent by signal, without a worker's response.
	signals bool
	// loses drops accepted inputs.
	loses bool
	// recent is the number of newest events for deduplication; 0 is all.
	recent int
	// taskQueue of the run; "": the default.
	taskQueue string

	// files are the bytes in the blob store; nil: the client has no store.
	files map[string][]byte
	// lacks are the events whose bytes an import misses.
	lacks []string

	inputs   [][]event.Event
	asked    []string // calls other than Send
	branched []client.BranchOptions
	branches client.Branches
	lacking  client.Offered
	checkErr error                                                          // of CheckTools
	evaluate func(id string, e client.Evaluation) (client.Evaluated, error) // nil: unexpected
	// scheduled are the schedules as created.
	scheduled []client.Schedule
}

func newFake(t *testing.T, replies ...[]event.Body) *fakeContext {
	return newFakeOf(t, "demo", replies...)
}

func newFakeOf(t *testing.T, name string, replies ...[]event.Body) *fakeContext {
	at := func(n int) time.Time { return time.Date(2026, 1, 2, 15, 4, n, 0, time.UTC) }
	return &fakeContext{Log: clienttest.NewLog(name, at), t: t, replies: replies}
}

// all returns the log, with deltas.
func (f *fakeContext) all() []event.Event {
	events, _, _ := f.Snapshot()
	return events
}

func (f *fakeContext) recordBodies(bodies ...event.Body) {
	for _, b := range bodies {
		f.Record(event.New(b))
	}
}

func (f *fakeContext) Send(_ context.Context, events ...event.Event) (client.Receipt, error) {
	if f.take != nil {
		if err := f.take(events); err != nil {
			return client.Receipt{}, err
		}
		if !f.loses {
			f.Record(events...)
		}
		return client.Receipt{}, nil
	}
	if ids := f.known(events); ids != nil {
		if f.signals {
			ids = nil
		}
		return client.Receipt{EventIDs: ids}, nil
	}
	if len(f.replies) == 0 {
		if f.err != nil {
			return client.Receipt{}, f.err
		}
		f.t.Errorf("unexpected input: %v", events)
		return client.Receipt{}, fmt.Errorf("unexpected input")
	}
	reply := f.replies[0]
	f.replies = f.replies[1:]
	var sent client.Receipt
	for i := range events {
		if events[i].ClientEventID == "" {
			events[i].ClientEventID = fmt.Sprintf("client-%d-%d", len(f.inputs), i)
		}
		sent.ClientEventIDs = append(sent.ClientEventIDs, events[i].ClientEventID)
	}
	f.inputs = append(f.inputs, events)
	if len(reply) > 0 {
		if rejected, ok := reply[0].(event.InputRejected); ok {
			rejected.Input = event.RedactEvents(events)
			e := event.New(rejected)
			e.ClientEventID = events[0].ClientEventID
			sent.RefusalID = f.Record(e)[0]
			return sent, fmt.Errorf("%w: %s", client.ErrRefused, rejected.Reason)
		}
	}
	sent.EventIDs = f.Record(events...)
	f.recordBodies(reply...)
	if f.signals {
		sent.EventIDs = nil
	}
	return sent, nil
}

// known returns the ids of events that were all recorded before; else nil.
func (f *fakeContext) known(events []event.Event) (ids []string) {
	log := f.all()
	if f.recent > 0 {
		log = log[max(0, len(log)-f.recent):]
	}
	for _, e := range events {
		i := slices.IndexFunc(log, func(other event.Event) bool {
			return e.ClientEventID != "" && other.ClientEventID == e.ClientEventID && other.Tag() != event.TagInputRejected
		})
		if i < 0 {
			return nil
		}
		ids = append(ids, log[i].ID)
	}
	return ids
}

func (f *fakeContext) Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if f.slow != nil {
			f.slow()
		}
		start := len(f.all())
		if _, err := f.Send(ctx, events...); err != nil && !errors.Is(err, client.ErrRefused) {
			yield(event.Event{}, err)
			return
		}
		for i, e := range f.all()[start:] {
			if slow := f.slowAfter[i]; slow != nil {
				slow()
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (f *fakeContext) RunEvents(context.Context, string, string) iter.Seq2[event.Event, error] {
	panic("unexpected call of RunEvents")
}

func (f *fakeContext) TaskQueue(context.Context) (string, error) {
	return cmp.Or(f.taskQueue, wire.TaskQueue), f.err
}

func (f *fakeContext) Events(ctx context.Context, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if f.missing {
			yield(event.Event{}, fmt.Errorf("context %s: %w", f.Name(), client.ErrNoContext))
			return
		}
		if !f.unrecorded {
			f.Log.Events(ctx, from)(yield)
		}
	}
}

func (f *fakeContext) EventsAndWaiting(ctx context.Context, from string, waiting func(client.Waiting)) iter.Seq2[event.Event, error] {
	f.Log.EventsAndWaiting(ctx, from, waiting)
	return f.Events(ctx, from)
}

func (f *fakeContext) UnattendedSince(context.Context) (time.Time, error) {
	if f.unattended != nil {
		return f.unattended(), nil
	}
	return time.Time{}, f.err
}

func (f *fakeContext) State(context.Context) (wire.State, error) {
	if f.missing {
		return wire.State{}, client.ErrNoContext
	}
	if f.onState != nil {
		f.onState()
	}
	if f.err != nil {
		return wire.State{}, f.err
	}
	var recorded []event.Event
	for _, e := range f.all() {
		if e.ID != "" {
			recorded = append(recorded, e)
		}
	}
	state := wire.StateOf(reducer.Load(f.Name(), reducer.Reduce, recorded...), time.Time{})
	if f.openCalls != nil {
		state.Request = &reducer.Request{ID: toolRequest, Calls: f.openCalls}
	}
	state.Status = wire.StatusIdle
	if f.answering {
		state.Status = wire.StatusAnswering
	}
	return state, nil
}

// Delivery reports events that are not in the log as lost.
func (f *fakeContext) Delivery(ctx context.Context, clientEventIDs ...string) (client.Delivery, error) {
	state, err := f.State(ctx)
	d := client.Delivery{Delivery: wire.Delivery{EventIDs: map[string]string{}, LastEventID: state.LastEventID, Status: state.Status}}
	for _, e := range f.all() {
		if slices.Contains(clientEventIDs, e.ClientEventID) && e.Tag() != event.TagInputRejected {
			d.EventIDs[e.ClientEventID] = e.ID
		}
	}
	return d, err
}

func (f *fakeContext) Interrupt(context.Context) error {
	f.asked = append(f.asked, "interrupt")
	return f.err
}

func (f *fakeContext) Close(_ context.Context, reason string) error {
	f.asked = append(f.asked, "close "+reason)
	return f.err
}

func (f *fakeContext) Import(_ context.Context, log iter.Seq2[event.Event, error], o client.ImportOptions) (client.Imported, error) {
	if f.err != nil {
		return client.Imported{}, f.err
	}
	var events []event.Event
	for e, err := range log {
		if err != nil {
			return client.Imported{}, err
		}
		events = append(events, e)
	}
	if len(f.lacks) > 0 && !o.AllowMissing {
		return client.Imported{}, client.ErrMissingBytes
	}
	f.asked = append(f.asked, "import")
	f.Replace(events)
	return client.Imported{Events: len(events), Missing: f.lacks}, nil
}

func (f *fakeContext) Blob(_ context.Context, ref string) ([]byte, error) {
	if f.files == nil {
		return nil, client.ErrNoArchive
	}
	if data, ok := f.files[ref]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("blob %s %w", ref, blobs.ErrNotFound)
}

func (f *fakeContext) Verify(context.Context) (client.Verification, error) {
	return f.verification, f.err
}

// CheckTools finds all tools, unless lacking is set.
func (f *fakeContext) CheckTools(context.Context, event.SetTools) (client.Offered, error) {
	return f.lacking, cmp.Or(f.checkErr, f.err)
}

// Evaluate calls evaluate, which must be set.
func (f *fakeContext) Evaluate(_ context.Context, id string, e client.Evaluation) (client.Evaluated, error) {
	return f.evaluate(id, e)
}

func (f *fakeContext) Attachment(context.Context, string) (event.FileAttachment, error) {
	return event.FileAttachment{}, client.ErrNoAttachment
}

func (f *fakeContext) Branch(_ context.Context, o client.BranchOptions) (client.Branched, error) {
	f.branched = append(f.branched, o)
	if f.err != nil {
		return client.Branched{}, f.err
	}
	if o.Admit != nil {
		if err := o.Admit(); err != nil {
			return client.Branched{}, err
		}
	}
	return client.Branched{ContextName: cmp.Or(o.Name, "demo-2"), ForkedFrom: cmp.Or(o.At, "demo:0006")}, nil
}

func (f *fakeContext) Branches(context.Context) (client.Branches, error) {
	return f.branches, f.err
}

func (f *fakeContext) Schedule(_ context.Context, s client.Schedule) (client.Schedule, error) {
	s.ContextName = f.Name()
	f.scheduled = append(f.scheduled, s)
	if f.err == nil {
		s.Next = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	}
	return s, f.err
}

func (f *fakeContext) PauseSchedule(_ context.Context, id string) error {
	f.asked = append(f.asked, "pause "+id)
	return f.err
}

func (f *fakeContext) ResumeSchedule(_ context.Context, id string) error {
	f.asked = append(f.asked, "resume "+id)
	return f.err
}

func (f *fakeContext) DeleteSchedule(_ context.Context, id string) error {
	f.asked = append(f.asked, "delete "+id)
	return f.err
}

// fakeClient has one or more contexts and a list.
type fakeClient struct {
	budgets map[string]wire.BudgetState
	tenant  string
	context *fakeContext
	others  []*fakeContext
	list    []client.Summary
	listErr error
	stored  []string // names in the blob store
	query   string
	// schedules are those that Schedules lists.
	schedules []client.Schedule
	usage     client.StoreUsage
	dead      bool // no live deltas
	liveErr   error
}

func (c *fakeClient) Open(name string) (conversation, error) {
	for _, other := range c.others {
		if name == other.Name() {
			return other, nil
		}
	}
	if name != c.context.Name() {
		return nil, fmt.Errorf("unexpected context %q: there is only %q", name, c.context.Name())
	}
	return c.context, nil
}

func (c *fakeClient) List(_ context.Context, query string) iter.Seq2[client.Summary, error] {
	c.query = query
	return func(yield func(client.Summary, error) bool) {
		if c.listErr != nil {
			yield(client.Summary{}, c.listErr)
			return
		}
		for _, s := range c.list {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (c *fakeClient) Summary(_ context.Context, name string) (client.Summary, error) {
	for _, s := range c.list {
		if s.ContextName == name {
			return s, nil
		}
	}
	return client.Summary{}, client.ErrNoContext
}

func (c *fakeClient) Events(ctx context.Context, name, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		opened, err := c.Open(name)
		if err != nil {
			yield(event.Event{}, client.ErrNoContext)
			return
		}
		opened.Events(ctx, from)(yield)
	}
}

// Activity is an hour after the start. A context with the name archived is.
func (c *fakeClient) Activity(_ context.Context, s client.Summary) (client.Activity, error) {
	return client.Activity{At: s.StartedAt.Add(time.Hour), Archived: s.ContextName == "archived"}, nil
}

func (c *fakeClient) Stored(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range c.stored {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (*fakeClient) Watch(context.Context, func(string)) error { return nil }

func (c *fakeClient) Schedules(_ context.Context, contextName string) iter.Seq2[client.Schedule, error] {
	return func(yield func(client.Schedule, error) bool) {
		if c.context.err != nil {
			yield(client.Schedule{}, c.context.err)
			return
		}
		for _, s := range c.schedules {
			if (contextName == "" || s.ContextName == contextName) && !yield(s, nil) {
				return
			}
		}
	}
}

func (c *fakeClient) dial(context.Context, client.Config) (contextClient, error) { return c, nil }

func (c *fakeClient) Tenant(tenant string) (contextClient, error) {
	of := *c
	of.tenant = tenant
	return &of, nil
}

func (c *fakeClient) LabelBudget(_ context.Context, label, value string) (wire.BudgetState, error) {
	if c.context != nil && c.context.err != nil {
		return wire.BudgetState{}, c.context.err
	}
	return c.budgets[event.JoinTenant(c.tenant, label)+"="+value], nil
}

func (c *fakeClient) StoreUsage(context.Context, ...string) (client.StoreUsage, error) {
	return c.usage, nil
}

func (c *fakeClient) Live() bool       { return !c.dead }
func (c *fakeClient) LiveError() error { return c.liveErr }
func (c *fakeClient) Shutdown()        {}

func (c *fakeClient) Ping(context.Context) error { return nil }
func (c *fakeClient) Limits() client.Limits      { return client.Limits{} }

type outcome struct {
	code        int
	out, errOut string
}

func (o outcome) tags(t *testing.T) []event.Tag {
	var tags []event.Tag
	for line := range strings.Lines(o.out) {
		var e event.Event
		require.NoError(t, e.UnmarshalJSON([]byte(line)), line)
		tags = append(tags, e.Tag())
	}
	return tags
}

// starter runs a command line with a context in memory.
func starter(t *testing.T, f *fakeContext, stdin string, args ...string) outcome {
	t.Helper()
	return starterWith(t, t.Context(), &fakeClient{context: f}, strings.NewReader(stdin), args...)
}

func starterWith(t *testing.T, ctx context.Context, c *fakeClient, stdin io.Reader, args ...string) outcome {
	t.Helper()
	return runStarter(t, ctx, c, streams{in: stdin}, args...)
}

// onTerminal runs a command line whose standard output is a terminal.
func onTerminal(t *testing.T, c *fakeClient, args ...string) outcome {
	t.Helper()
	return runStarter(t, t.Context(), c, streams{in: strings.NewReader(""), outTerminal: true}, args...)
}

func runStarter(t *testing.T, ctx context.Context, c *fakeClient, s streams, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	s.out, s.err = &out, &errOut
	code := execute(ctx, &app{
		streams: s,
		dial: func(context.Context, client.Config) (contextClient, error) {
			return c, nil
		},
	}, args)
	if c.context != nil && !t.Failed() {
		require.Empty(t, c.context.replies, "unused replies")
	}
	return outcome{code, out.String(), errOut.String()}
}

// answered is a turn whose answer consists of parts.
func answered(request string, through int, parts ...string) []event.Body {
	bodies := []event.Body{event.LLMRequestStarted{
		RequestID: request, ProviderID: "p", Model: "m", ThroughEventID: event.FormatID("demo", through), Attempt: 1,
	}}
	for i, part := range parts {
		bodies = append(bodies, event.TextDelta{RequestID: request, Attempt: 1, Index: i, Delta: part})
	}
	return append(bodies,
		event.AssistantMessage{RequestID: request, Content: strings.Join(parts, ""), ThroughEventID: event.FormatID("demo", through)},
		event.LLMRequestCompleted{RequestID: request, DurationMs: 5, FinishReason: "stop"},
	)
}
