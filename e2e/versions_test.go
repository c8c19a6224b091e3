package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// beforeRules is the last commit whose runs do not record by which rules they
// go. Its workers know no update, no archive and no run that continues another.
const beforeRules = "ffe9e187a74a2be73b58756fa49c07b5f314911f"

// workerOf builds the worker as it was at a commit.
func workerOf(t *testing.T, commit string) string {
	t.Helper()
	git := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = ".."
		return cmd
	}
	if out, err := git("cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("this needs commit %s to build its worker, and the checkout is without it: %v %s", commit, err, out)
	}
	tree := t.TempDir()
	archived := filepath.Join(tree, "tree.tar")
	for _, cmd := range []*exec.Cmd{
		git("archive", "--output", archived, commit),
		exec.CommandContext(t.Context(), "tar", "-x", "-C", tree, "-f", archived),
		exec.CommandContext(t.Context(), "go", "build", "-C", tree, "-o", "worker.bin", "./worker"),
	} {
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v\n%s", cmd, out)
	}
	return filepath.Join(tree, "worker.bin")
}

// workerBefore starts a worker as it was at a commit.
func (w *world) workerBefore(binary string) *process {
	w.t.Helper()
	return w.start(exec.Command(binary, "--address", w.on.temporal, "--nats-url", w.on.nats, "--task-queue", w.queue),
		"OPENAI_BASE_URL="+w.model.URL, "OPENAI_MODEL=scripted")
}

// signal sends a message that wants no answer as clients always could.
func (w *world) signal(c *session.Context, clientEventID, text string) {
	w.t.Helper()
	require.NoError(w.t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, note(clientEventID, text)))
}

// TestContextsOfAnEarlierVersionGoOn has one context in each state that a run of
// the first rules can be in when its worker is replaced by one of today.
func TestContextsOfAnEarlierVersionGoOn(t *testing.T) {
	t.Parallel()
	binary := workerOf(t, beforeRules)
	w := newWorldOn(t, surroundings{patience: 5 * time.Minute},
		llmtest.Answer("Hello."), llmtest.Answer("Again."), llmtest.Answer("Bye."), llmtest.Answer("Much."),
		llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()),
		llmtest.Func(echo))
	before := w.workerBefore(binary)

	idle, repeated, closed, long, answering := w.open("was-idle"), w.open("was-repeated"), w.open("was-closed"), w.open("was-long"), w.open("was-answering")
	w.say(idle, "Hi")
	w.say(repeated, "Hi")
	w.signal(repeated, "one", "One")
	w.signal(repeated, "one", "One")
	w.say(closed, "Hi")
	w.signal(closed, "one", "One")
	w.signal(closed, "one", "One")
	w.close(closed, "for today")
	w.say(long, "Hi")
	w.lengthen(long)
	turn := w.ask(answering, "Count")
	turn.underWay()
	before.kill()
	w.worker()

	said := w.say(idle, "Still there?")
	require.Equal(t, "You said: Still there?", spoken(said))
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Hi"
		LLMRequestStarted 1 scripted attempt 1 through 2
		AssistantMessage "Hello." through 2
		LLMRequestCompleted 1 stop
		UserMessage "Still there?"
		LLMRequestStarted 2 scripted attempt 1 through 6
		AssistantMessage "You said: Still there?" through 6
		LLMRequestCompleted 2 stop
	`), w.log(idle))
	w.replay(idle, "")

	w.send(repeated, note("one", "One"), note("two", "Two"))
	require.Equal(t, 4, w.notesIn(repeated), "a run keeps the rules with which it began")
	w.replay(repeated, "")

	w.send(closed, note("two", "Two"))
	w.send(closed, note("two", "Two"))
	require.Equal(t, 3, w.notesIn(closed), "a new session goes by the rules of today")
	require.Equal(t, 2, countOf(w, closed, event.TagSessionStarted))
	w.replay(closed, "")

	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, story(`
		SessionStarted after 0
		UserMessage "Count"
		LLMRequestStarted 1 scripted attempt 1
		LLMRequestStarted 1 scripted attempt 2
		AssistantMessage "You said: Count"
		LLMRequestCompleted 1 stop
	`), withoutPlaces(w.log(answering)))
	w.replay(answering, "")

	said = w.say(long, "Still there?")
	require.Equal(t, "You said: Still there?", spoken(said))
	said = w.say(long, "And now?")
	require.Equal(t, "You said: And now?", spoken(said))
	runs := w.runs(long)
	require.Len(t, runs, 2, "a run that has become long before there were others hands over")
	w.log(long)
	for _, run := range runs {
		w.replayRun(long, run, "")
	}
	sent, err := long.Send(w.ctx, note("last", "Last"))
	require.NoError(t, err)
	again, err := long.Send(w.ctx, note("last", "Last"))
	require.NoError(t, err)
	require.Equal(t, sent.EventIDs, again.EventIDs, "the run that goes on goes by the rules of today")
}

// notesIn is how many messages of the log nobody had to answer.
func (w *world) notesIn(c *session.Context) (n int) {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
		if m, ok := e.Body.(event.UserMessage); ok && m.TriggersTurn != nil {
			n++
		}
	}
	return n
}

// lengthen makes the history of a context so long, in bytes, that the server
// suggests to go on in another run, and waits until the context has heard of it.
func (w *world) lengthen(c *session.Context) {
	w.t.Helper()
	const suggested, megabyte = 4 << 20, 1_000_000
	// Each is there twice, as it came and as it was recorded.
	for i := range suggested/megabyte/2 + 2 {
		w.signal(c, fmt.Sprintf("%d", i), strings.Repeat("x", megabyte))
		w.await(c, func(e event.Event) bool { return e.ClientEventID == fmt.Sprintf("%d", i) })
	}
	d, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), "")
	require.NoError(w.t, err)
	require.Greater(w.t, d.GetWorkflowExecutionInfo().GetHistorySizeBytes(), int64(suggested))
}
