package e2e

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing/intercept"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
	"github.com/seed-9ed7edd4/chronicle/workflows/replaytest"
)

// server and nats are shared by all tests of the package. Each test has its own task queue
// and contexts.
var (
	server  interface{ Address() string }
	nats    interface{ URL() string }
	command string // the temporal command
)

func TestMain(m *testing.M) {
	if settings, ok := os.LookupEnv(workerVariable); ok {
		os.Exit(workerMain(settings))
	}
	os.Exit(runMain(m))
}

func runMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chronicle-e2e-")
	if err != nil {
		return reportError(err)
	}
	defer os.RemoveAll(dir)
	command, err = devserver.Find(context.Background(), func(message string) { fmt.Fprintln(os.Stderr, message) })
	if err != nil {
		return reportError(err)
	}
	stop, err := findServers(dir)
	if err != nil {
		return reportError(err)
	}
	defer stop()
	defer browsertest.Stop()
	if err := register(server.Address()); err != nil {
		return reportError(err)
	}
	return m.Run()
}

func register(address string) error {
	c, err := sdkclient.Dial(sdkclient.Options{HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	return errors.Join(
		connect.RegisterSearchAttributes(context.Background(), c, sdkclient.DefaultNamespace),
		connect.RegisterDetailAttributes(context.Background(), c, sdkclient.DefaultNamespace),
	)
}

func reportError(err error) int {
	fmt.Fprintln(os.Stderr, "start the end-to-end tests:", err)
	return 1
}

// testTimeout is the default timeout of a test. It only catches hangs.
const testTimeout = 5 * time.Minute

// environment configures a world. Zero fields mean the shared servers and testTimeout.
type environment struct {
	temporal      string // address
	nats          string // URL
	model         string // address of the scripted model
	timeout       time.Duration
	natsConnected func() // called when NATS is reachable again; optional
	tracers       trace.TracerProvider
	meters        metric.MeterProvider
	waitForUpdate bool // clients send no signal instead of an update that takes long
}

// world is the fixture of a test: a scripted model, workers and a client, with a task
// queue of its own.
type world struct {
	t        *testing.T
	ctx      context.Context
	on       environment
	temporal sdkclient.Client
	stream   *stream.Conn
	model    *llmtest.Server
	client   *client.Client
	blobURL  string
	archive  *archive.Archive
	storeID  string
	queue    string
}

var worlds atomic.Int64

func newWorld(t *testing.T, steps ...llmtest.Step) *world {
	t.Helper()
	return newWorldOn(t, environment{}, steps...)
}

func newWorldOn(t *testing.T, on environment, steps ...llmtest.Step) *world {
	t.Helper()
	on.temporal = cmp.Or(on.temporal, server.Address())
	on.nats = cmp.Or(on.nats, nats.URL())
	on.timeout = cmp.Or(on.timeout, testTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), on.timeout)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, on: on, queue: fmt.Sprintf("e2e-%d-%d", os.Getpid(), worlds.Add(1))}
	w.blobURL = blobURL(t)
	store, err := blobs.Open(ctx, w.blobURL, "default")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w.archive = archive.New(store)
	w.storeID, err = store.Identity(ctx)
	require.NoError(t, err)
	w.temporal = w.dial(store)
	w.stream, err = stream.Connect(on.nats, stream.Options{Name: t.Name(), Auth: natsAuth(), OnConnect: on.natsConnected})
	require.NoError(t, err)
	t.Cleanup(w.stream.Close)
	require.NoError(t, w.stream.Flush(ctx))
	w.model = llmtest.StartAt(t, cmp.Or(on.model, "127.0.0.1:0"), steps...)
	w.client = client.New(client.Options{Temporal: w.temporal, Stream: w.stream, Archive: w.archive, TaskQueue: w.queue})
	return w
}

// A nil store makes a client without a blob store.
func (w *world) dial(store *blobs.Store, changes ...func(*sdkclient.Options)) sdkclient.Client {
	w.t.Helper()
	options := sdkclient.Options{
		HostPort:          w.on.temporal,
		Identity:          "e2e",
		Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: sdkclient.ConnectionOptions{GrpcCompression: &sdkclient.GrpcCompressionNone{}}, // as in production
	}
	options = connect.WithStore(options, store)
	if w.on.waitForUpdate {
		options.Interceptors = append(options.Interceptors, &waitForUpdate{until: w.ctx})
	}
	if w.on.tracers != nil {
		options.Interceptors = append(options.Interceptors, intercept.Client(w.on.tracers))
	}
	for _, change := range changes {
		change(&options)
	}
	c, err := sdkclient.DialContext(w.ctx, options)
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// worker starts a worker, which stops at the end of the test at the latest.
func (w *world) worker(changes ...func(*contexts.Options)) (stop func()) {
	w.t.Helper()
	return w.workerOn(w.connection(), w.workerOptions(changes...))
}

// connection is what contexts.Connect returns, except that the store is not recorded in the namespace, where each test
// has its own.
func (w *world) connection() *contexts.Connection {
	return &contexts.Connection{
		Temporal: w.temporal, TaskQueue: w.queue, Archive: w.archive, StoreID: w.storeID, SearchAttributes: true, DetailAttributes: true,
		Stream: w.stream, Tracers: w.on.tracers, Meters: w.on.meters,
	}
}

func (w *world) workerOptions(changes ...func(*contexts.Options)) contexts.Options {
	options := contexts.Options{Models: scripted(w.model.URL), Tools: probes{}, Failover: failover(w.t)}
	for _, change := range changes {
		change(&options)
	}
	return options
}

func (w *world) workerOn(conn *contexts.Connection, options contexts.Options) (stop func()) {
	w.t.Helper()
	running, err := conn.NewWorker(options)
	require.NoError(w.t, err)
	require.NoError(w.t, running.Start())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			running.Stop()
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) open(name string) *client.Context {
	w.t.Helper()
	c, err := w.client.Open(fmt.Sprintf("%s.%s", name, w.queue))
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Log(w.history(c))
		}
	})
	return c
}

var recordHistories = flag.Bool("histories", false,
	"record the histories of tests that have none; existing ones are never changed")

// replay replays the newest run of a context and requires that it is deterministic. With
// -histories and a name, it also records the history for replay tests.
func (w *world) replay(c *client.Context, name string) {
	w.t.Helper()
	w.replayRun(c, "", name)
}

func (w *world) replayRun(c *client.Context, runID, name string) {
	w.t.Helper()
	w.replayWorkflow(wire.WorkflowID(c.Name()), runID, name)
}

func (w *world) replayWorkflow(id, runID, name string) *historypb.History {
	w.t.Helper()
	var h historypb.History
	events := w.temporal.GetWorkflowHistory(w.ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(w.t, err)
		h.Events = append(h.Events, e)
	}
	require.NoError(w.t, replaytest.Replay(&h, eventlog.ExternalStorage(w.archive.Store())))
	if name != "" {
		file := filepath.Join("..", "..", "workflows", "testdata", "histories", name+".json")
		if *recordHistories {
			require.NoError(w.t, replaytest.Keep(&h, file))
		}
		require.FileExists(w.t, file, "run make histories and commit the file")
	}
	return &h
}

func (w *world) history(c *client.Context) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var b strings.Builder
	fmt.Fprintf(&b, "history of %s\n", c.Name())
	history := w.temporal.GetWorkflowHistory(ctx, wire.WorkflowID(c.Name()), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		if err != nil {
			fmt.Fprintln(&b, err)
			break
		}
		fmt.Fprintln(&b, h.GetEventId(), h.GetEventType(), event.Redact(fmt.Sprint(h.GetAttributes()), 400))
	}
	return b.String()
}

func (w *world) say(c *client.Context, text string, before ...event.Event) []event.Event {
	w.t.Helper()
	var out []event.Event
	for e, err := range c.Ask(w.ctx, append(before, event.New(event.UserMessage{Content: text}))...) {
		require.NoError(w.t, err)
		out = append(out, e)
	}
	require.NotEmpty(w.t, out, "the turn has no events")
	return out
}

func (w *world) send(c *client.Context, events ...event.Event) {
	w.t.Helper()
	sent, err := c.Send(w.ctx, events...)
	require.NoError(w.t, err)
	if sent.EventIDs != nil {
		return
	}
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(w.t, err)
		if e.ClientEventID == sent.ClientEventIDs[len(sent.ClientEventIDs)-1] {
			return
		}
	}
	w.t.Fatal("the events were not recorded")
}

// sendForIDs repeats Send until a worker responds in time and returns the ids of the events, which
// have client event ids.
func (w *world) sendForIDs(c *client.Context, events ...event.Event) []string {
	w.t.Helper()
	for {
		sent, err := c.Send(w.ctx, events...)
		require.NoError(w.t, err)
		if sent.EventIDs != nil {
			return sent.EventIDs
		}
	}
}

func (w *world) close(c *client.Context, reason string) {
	w.t.Helper()
	require.NoError(w.t, c.Close(w.ctx, reason))
	require.NoError(w.t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), "").Get(w.ctx, nil))
}

type turn struct {
	w    *world
	next func() (event.Event, error, bool)
	seen []event.Event
}

// ask returns when the message is recorded.
func (w *world) ask(c *client.Context, text string) *turn {
	w.t.Helper()
	next, stop := iter.Pull2(c.Ask(w.ctx, event.New(event.UserMessage{Content: text})))
	w.t.Cleanup(stop)
	turn := &turn{w: w, next: next}
	turn.until(func(e event.Event) bool { return e.Tag() == event.TagUserMessage })
	return turn
}

func (t *turn) until(found func(event.Event) bool) {
	t.w.t.Helper()
	if slices.ContainsFunc(t.seen, found) {
		return
	}
	for {
		e, err, ok := t.next()
		require.NoError(t.w.t, err)
		require.True(t.w.t, ok, "the turn ended before the awaited event")
		t.seen = append(t.seen, e)
		if found(e) {
			return
		}
	}
}

func (t *turn) rest() event.Event {
	t.w.t.Helper()
	for {
		e, err, ok := t.next()
		if !ok {
			return t.seen[len(t.seen)-1]
		}
		require.NoError(t.w.t, err)
		t.seen = append(t.seen, e)
	}
}

func contents(r llmtest.Request) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Role+": "+m.Content)
	}
	return out
}

// log returns the log of a context, one line per event. It checks ids and parents.
func (w *world) log(c *client.Context) string {
	w.t.Helper()
	var lines []string
	counter := 0
	parent := ""
	for _, e := range w.from(c, "") {
		counter++
		require.Equal(w.t, event.FormatID(c.Name(), counter), e.ID, "ids have no gaps")
		require.Equal(w.t, parent, e.ParentID, "parentEventId is the preceding event")
		parent = e.ID
		lines = append(lines, describe(e))
	}
	return strings.Join(lines, "\n")
}

// describe formats the fields of an event that are equal in every run of a test.
func describe(e event.Event) string {
	line := strings.TrimSuffix(string(e.Tag()), "Event")
	number := func(id string) int { return max(event.Counter(id), event.RequestNumber(id)) }
	switch b := e.Body.(type) {
	case event.SystemPrompt:
		line += fmt.Sprintf(" %q", b.Content)
	case event.UserMessage:
		line += fmt.Sprintf(" %q", b.Content)
	case event.AssistantMessage:
		line += fmt.Sprintf(" %q through %d", b.Content, number(b.ThroughEventID))
		if b.Partial {
			line += " partial"
		}
		if b.Reasoning != "" {
			line += fmt.Sprintf(" reasoning %q", b.Reasoning)
		}
	case event.FileAttachment:
		line += fmt.Sprintf(" %s %s", b.FileName, b.MediaType)
	case event.SessionStarted:
		line += fmt.Sprintf(" after %d", b.LoadedEventCount)
	case event.SessionEnded:
		line += " " + b.Reason
	case event.LLMRequestStarted:
		line += fmt.Sprintf(" %d %s attempt %d through %d", number(b.RequestID), b.Model, b.Attempt, number(b.ThroughEventID))
		if b.Purpose != "" {
			line += " " + string(b.Purpose)
		}
	case event.Compacted:
		line += fmt.Sprintf(" %d %s %d messages", number(b.RequestID), b.Strategy, b.Messages)
	case event.LLMRequestCompleted:
		line += fmt.Sprintf(" %d %s", number(b.RequestID), b.FinishReason)
	case event.LLMRequestInterrupted:
		line += fmt.Sprintf(" %d %s %q", number(b.RequestID), b.Reason, b.PartialResponse)
	case event.LLMRequestFailed:
		line += fmt.Sprintf(" %d after %d retries: %s", number(b.RequestID), b.RetriesAttempted, b.Error)
	case event.LLMRequestFellBack:
		line += fmt.Sprintf(" %d from %s to %s after %d retries: %s", number(b.RequestID), b.FromProvider, b.ToProvider, b.RetriesAttempted, b.Error)
	case event.LLMAttemptEnded:
		line += fmt.Sprintf(" %d %s", number(b.RequestID), b.Outcome)
	case event.InputRejected:
		line += " " + b.Reason
	case event.HookApplied:
		line += " " + b.Hook + " " + b.String()
	case event.SetCompaction, event.SetTools, event.ToolsOffered, event.BudgetSet:
		line += " " + b.(fmt.Stringer).String()
	case event.BudgetExceeded:
		line += fmt.Sprintf(" %d %s", number(b.RequestID), b.Budget)
	case event.ToolCall:
		line += fmt.Sprintf(" %s %s", b.ToolCallID, b.ToolName)
	case event.ToolResult:
		line += fmt.Sprintf(" %s %s%s", b.ToolCallID, b.Value, b.Error)
	case event.ApprovalRequested:
		line += " " + b.ToolCallID
	case event.ApprovalDecided:
		line += fmt.Sprintf(" %s %s", b.ToolCallID, b.Decision)
	}
	return line
}

// withoutPositions removes throughEventId from a log, where it depends on timing.
func withoutPositions(log string) string { return positions.ReplaceAllString(log, "") }

var positions = regexp.MustCompile(` through \d+`)

func story(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}
