package e2e

import (
	"cmp"
	"context"
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
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/page/browsertest"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
	"github.com/seed-9ed7edd4/chronicle/workflows/replaytest"
)

// server and nats are shared by all tests of the package: each test has a task
// queue and contexts of its own. They are started here, unless servers_test.go
// is told to use others.
var (
	server  interface{ Address() string }
	nats    interface{ URL() string }
	command string // the temporal command
	scratch string // a folder that is taken away at the end
)

func TestMain(m *testing.M) {
	if settings, ok := os.LookupEnv(asWorker); ok {
		os.Exit(serveContexts(settings))
	}
	os.Exit(runMain(m))
}

func runMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chronicle-e2e-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	scratch = dir
	command, err = devserver.Find(context.Background(), func(message string) { fmt.Fprintln(os.Stderr, message) })
	if err != nil {
		return complain(err)
	}
	stop, err := findServers(dir)
	if err != nil {
		return complain(err)
	}
	defer stop()
	defer browsertest.Stop()
	if err := register(server.Address()); err != nil {
		return complain(err)
	}
	return m.Run()
}

// register makes the search attributes known to a server.
func register(address string) error {
	c, err := client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	return contexts.RegisterSearchAttributes(context.Background(), c, client.DefaultNamespace)
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "the end-to-end tests cannot start:", err)
	return 1
}

// patience is how long a test waits for something that is sure to come. It is
// generous, since it only catches a hang.
const patience = time.Minute

// surroundings are the servers that a world is on, and how long its test may
// take. What is zero is shared by all tests.
type surroundings struct {
	temporal string // address
	nats     string // URL
	patience time.Duration
	// natsFound is called when NATS is back. Optional.
	natsFound func()
}

// world is what one test has to itself: a scripted model, a worker and a client.
type world struct {
	t        *testing.T
	ctx      context.Context
	on       surroundings
	temporal client.Client
	stream   *stream.Conn
	model    *llmtest.Server
	client   *session.Client
	blobURL  string
	archive  *archive.Archive
	storeID  string
	queue    string
}

var worlds atomic.Int64

// newWorld makes a world whose model follows the script.
func newWorld(t *testing.T, steps ...llmtest.Step) *world {
	t.Helper()
	return newWorldOn(t, surroundings{}, steps...)
}

// newWorldOn is newWorld on other servers.
func newWorldOn(t *testing.T, on surroundings, steps ...llmtest.Step) *world {
	t.Helper()
	on.temporal = cmp.Or(on.temporal, server.Address())
	on.nats = cmp.Or(on.nats, nats.URL())
	on.patience = cmp.Or(on.patience, patience)
	ctx, cancel := context.WithTimeout(context.Background(), on.patience)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, on: on, queue: fmt.Sprintf("e2e-%d-%d", os.Getpid(), worlds.Add(1))}
	w.blobURL = blobURL(t, w.queue)
	store, err := blobs.Open(ctx, w.blobURL, "default")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w.archive = archive.New(store)
	w.storeID, err = store.Identity(ctx)
	require.NoError(t, err)
	w.temporal = w.dial(store)
	w.stream, err = stream.Connect(on.nats, stream.Options{Name: t.Name(), Found: on.natsFound})
	require.NoError(t, err)
	t.Cleanup(w.stream.Close)
	require.NoError(t, w.stream.Flush(ctx))
	w.model = llmtest.Start(t, steps...)
	w.client = session.New(session.Options{Temporal: w.temporal, Stream: w.stream, Archive: w.archive, TaskQueue: w.queue})
	return w
}

// dial connects to Temporal, with a blob store or, nil, without.
func (w *world) dial(store *blobs.Store) client.Client {
	w.t.Helper()
	c, err := client.DialContext(w.ctx, client.Options{
		HostPort:          w.on.temporal,
		Identity:          "e2e",
		Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ExternalStorage:   blobs.ExternalStorage(store),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}, // as everywhere
	})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// worker starts a worker. It is stopped at the end of the test, unless stop is
// called before.
func (w *world) worker(changes ...func(*contexts.Options)) (stop func()) {
	w.t.Helper()
	options := contexts.Options{
		TaskQueue: w.queue, Models: scripted(w.model.URL), Stream: w.stream,
		Archive: w.archive, StoreID: w.storeID, SearchAttributes: true, DefaultModel: "scripted",
	}
	for _, change := range changes {
		change(&options)
	}
	return w.workerOn(w.temporal, options)
}

// workerOn is worker on another connection.
func (w *world) workerOn(temporal client.Client, options contexts.Options) (stop func()) {
	w.t.Helper()
	running := contexts.NewWorker(temporal, options)
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

// open returns a context that no other test uses.
func (w *world) open(name string) *session.Context {
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

var keepHistories = flag.Bool("histories", false,
	"add the histories of stories that have none yet to those that are replayed for ever; what is there is never changed")

// replay replays the newest run of a context, which must bear out every
// decision that was recorded. With -histories it also keeps the history under
// a name, for all later code to replay.
func (w *world) replay(c *session.Context, story string) {
	w.t.Helper()
	w.replayRun(c, "", story)
}

// replayRun is replay for any run.
func (w *world) replayRun(c *session.Context, runID, story string) {
	w.t.Helper()
	var h historypb.History
	events := w.temporal.GetWorkflowHistory(w.ctx, wire.WorkflowID(c.Name()), runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(w.t, err)
		h.Events = append(h.Events, e)
	}
	require.NoError(w.t, replaytest.Replay(&h, blobs.ExternalStorage(w.archive.Store())))
	if *keepHistories && story != "" {
		require.NoError(w.t, replaytest.Keep(&h, filepath.Join("..", "workflows", "testdata", "histories", story+".json")))
	}
}

// history is what the server has of a context, to explain a failure.
func (w *world) history(c *session.Context) string {
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

// say sends a user message and returns what its turn yielded.
func (w *world) say(c *session.Context, text string, before ...event.Event) []event.Event {
	w.t.Helper()
	var out []event.Event
	for e, err := range c.Ask(w.ctx, append(before, event.New(event.UserMessage{Content: text}))...) {
		require.NoError(w.t, err)
		out = append(out, e)
	}
	require.NotEmpty(w.t, out, "the turn yielded nothing")
	return out
}

// send sends events and waits until they are recorded, without asking for an
// answer to them.
func (w *world) send(c *session.Context, events ...event.Event) {
	w.t.Helper()
	sent, err := c.Send(w.ctx, events...)
	require.NoError(w.t, err)
	if sent.EventIDs != nil {
		return
	}
	for e, err := range c.Follow(w.ctx, session.FollowOptions{}) {
		require.NoError(w.t, err)
		if e.ClientEventID == sent.ClientEventIDs[len(sent.ClientEventIDs)-1] {
			return
		}
	}
	w.t.Fatal("the events were not recorded")
}

// close closes the context and waits until its workflow has ended.
func (w *world) close(c *session.Context, reason string) {
	w.t.Helper()
	require.NoError(w.t, c.Close(w.ctx, reason))
	require.NoError(w.t, w.temporal.GetWorkflow(w.ctx, wire.WorkflowID(c.Name()), "").Get(w.ctx, nil))
}

// turn is a turn that a test goes through step by step.
type turn struct {
	w    *world
	next func() (event.Event, error, bool)
	seen []event.Event
}

// ask sends a user message, and returns once it is sent.
func (w *world) ask(c *session.Context, text string) *turn {
	w.t.Helper()
	next, stop := iter.Pull2(c.Ask(w.ctx, event.New(event.UserMessage{Content: text})))
	w.t.Cleanup(stop)
	turn := &turn{w: w, next: next}
	turn.until(func(e event.Event) bool { return e.Tag() == event.TagUserMessage })
	return turn
}

// until goes on to an event, which may have been seen already.
func (t *turn) until(found func(event.Event) bool) {
	t.w.t.Helper()
	if slices.ContainsFunc(t.seen, found) {
		return
	}
	for {
		e, err, ok := t.next()
		require.NoError(t.w.t, err)
		require.True(t.w.t, ok, "the turn ended before what the test waits for")
		t.seen = append(t.seen, e)
		if found(e) {
			return
		}
	}
}

// rest goes on to the end of the turn and returns its last event.
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

// contents are the messages of a request that have plain text.
func contents(r llmtest.Request) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Role+": "+m.Content)
	}
	return out
}

// log is the recorded log of a context, one line for each event.
func (w *world) log(c *session.Context) string {
	w.t.Helper()
	var lines []string
	counter := 0
	parent := ""
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
		counter++
		require.Equal(w.t, event.FormatID(c.Name(), counter), e.ID, "ids are dense")
		require.Equal(w.t, parent, e.ParentID, "each event names the one before it")
		parent = e.ID
		lines = append(lines, describe(e))
	}
	return strings.Join(lines, "\n")
}

// describe is an event in a line, without what differs from run to run.
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
	case event.FileAttachment:
		line += fmt.Sprintf(" %s %s", b.FileName, b.MediaType)
	case event.SessionStarted:
		line += fmt.Sprintf(" after %d", b.LoadedEventCount)
	case event.SessionEnded:
		line += " " + b.Reason
	case event.LLMRequestStarted:
		line += fmt.Sprintf(" %d %s attempt %d through %d", number(b.RequestID), b.Model, b.Attempt, number(b.ThroughEventID))
	case event.LLMRequestCompleted:
		line += fmt.Sprintf(" %d %s", number(b.RequestID), b.FinishReason)
	case event.LLMRequestInterrupted:
		line += fmt.Sprintf(" %d %s %q", number(b.RequestID), b.Reason, b.PartialResponse)
	case event.LLMRequestFailed:
		line += fmt.Sprintf(" %d after %d retries: %s", number(b.RequestID), b.RetriesAttempted, b.Error)
	case event.LLMRequestFellBack:
		line += fmt.Sprintf(" %d from %s to %s after %d retries: %s", number(b.RequestID), b.FromProvider, b.ToProvider, b.RetriesAttempted, b.Error)
	case event.InputRejected:
		line += " " + b.Reason
	}
	return line
}

// withoutPlaces leaves out of a log what each event had seen: how soon one
// attempt follows another decides whether it was shown the start of that.
func withoutPlaces(log string) string { return places.ReplaceAllString(log, "") }

var places = regexp.MustCompile(` through \d+`)

// story turns an expected log into what log returns: indentation is dropped.
func story(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}
