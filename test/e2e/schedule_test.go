package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// eventually polls a condition of the server that no event reports.
func (w *world) eventually(condition func() bool) {
	w.t.Helper()
	require.Eventually(w.t, condition, testTimeout, 50*time.Millisecond)
}

func (w *world) schedule(c *client.Context, id string) *sdkclient.ScheduleDescription {
	w.t.Helper()
	d, err := w.temporal.ScheduleClient().GetHandle(w.ctx, wire.ScheduleID(c.Name(), id)).Describe(w.ctx)
	require.NoError(w.t, err)
	return d
}

// deleteSchedules deletes the schedules of a context at the end of the test.
func (w *world) deleteSchedules(c *client.Context, ids ...string) {
	w.t.Cleanup(func() {
		for _, id := range ids {
			_ = c.DeleteSchedule(w.ctx, id) // the test may have deleted it
		}
	})
}

// scheduled returns the ids of the scheduled messages in the log of a context.
func (w *world) scheduled(c *client.Context) (clientEventIDs []string) {
	w.t.Helper()
	for _, e := range w.from(c, "") {
		if strings.HasPrefix(e.ClientEventID, "schedule:") {
			clientEventIDs = append(clientEventIDs, e.ClientEventID)
		}
	}
	return clientEventIDs
}

// awaitScheduled waits until the log has n scheduled messages.
func (w *world) awaitScheduled(c *client.Context, n int) {
	w.t.Helper()
	seen := 0
	for e, err := range c.Follow(w.ctx, client.FollowOptions{}) {
		require.NoError(w.t, err)
		if strings.HasPrefix(e.ClientEventID, "schedule:") {
			seen++
		}
		if seen == n {
			return
		}
	}
	w.t.Fatal("the schedule sent no message")
}

// awaitAllScheduled waits until a paused schedule has sent its last message and the log contains one
// message for each action, and returns their ids.
func (w *world) awaitAllScheduled(c *client.Context, id string) (clientEventIDs []string) {
	w.t.Helper()
	w.eventually(func() bool {
		d := w.schedule(c, id)
		clientEventIDs = w.scheduled(c)
		return d.Schedule.State.Paused && len(d.Info.RunningWorkflows) == 0 && len(clientEventIDs) == d.Info.NumActions
	})
	return clientEventIDs
}

func TestAScheduleSendsMessagesUntilItIsPausedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	c, control := w.open("scheduled"), w.open("control")
	w.deleteSchedules(c, "tick")
	w.deleteSchedules(control, client.DefaultScheduleID)
	w.say(c, "Hello")
	w.close(c, "closed")

	w.starter("", "schedule", "-n", c.Name(), "--id", "tick", "--every", "1s", "-m", "Tick")
	w.awaitScheduled(c, 2)
	require.Contains(t, w.log(c), "SessionEnded closed\nSessionStarted after")
	ids := w.scheduled(c)
	require.Regexp(t, `^schedule:tick-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, ids[0])
	require.NotEqual(t, ids[0], ids[1])
	listed := ""
	w.eventually(func() bool {
		listed = w.starter("", "schedule", "list", "-n", c.Name(), "--json")
		return listed != ""
	})
	require.Contains(t, listed, fmt.Sprintf(`{"contextName":%q,"id":"tick","everyMs":1000,"message":{"content":"Tick"},"paused":false,"next":"`, c.Name()))

	w.starter("", "schedule", "pause", "-n", c.Name(), "--id", "tick")
	before := w.awaitAllScheduled(c, "tick")
	w.starter("", "schedule", "-n", control.Name(), "--every", "1s", "-m", "Tock")
	w.awaitScheduled(control, 3)
	require.Equal(t, before, w.scheduled(c), "a paused schedule sends nothing")

	// The same scheduled time again.
	actions := w.schedule(c, "tick").Info.RecentActions
	again := actions[len(actions)-1].StartWorkflowResult.WorkflowID
	run, err := w.temporal.ExecuteWorkflow(w.ctx, sdkclient.StartWorkflowOptions{ID: again, TaskQueue: w.queue}, wire.WorkflowSend,
		wire.Scheduled{ContextName: c.Name(), Event: []byte(`{"_tag":"UserMessageEvent","content":"Tick"}`)})
	require.NoError(t, err)
	require.NoError(t, run.Get(w.ctx, nil))
	require.Equal(t, before, w.scheduled(c), "the same scheduled time sends one message")
	w.replayWorkflow(again, "", "schedule")

	w.starter("", "schedule", "--id", "tick", "-n", c.Name(), "--cron", "0 9 * * MON-FRI", "--timezone", "Europe/Berlin", "-m", "Plan")
	listed = w.starter("", "schedule", "list", "-n", c.Name())
	require.Contains(t, listed, "cron 0 9 * * MON-FRI Europe/Berlin")
	require.Regexp(t, `paused +Plan`, listed)
	w.starter("", "schedule", "resume", "-n", c.Name(), "--id", "tick")
	require.False(t, w.schedule(c, "tick").Schedule.State.Paused)
	for flag, args := range map[string][]string{
		"--cron":     {"--cron", "61 * * * *"},
		"--timezone": {"--cron", "0 9 * * *", "--timezone", "Mars/Olympus"},
	} {
		_, errOut, err := w.tryStarter("", append([]string{"schedule", "-n", c.Name(), "-m", "Hi"}, args...)...)
		require.ErrorContains(t, err, "exit status 2")
		require.Contains(t, errOut, "starter schedule: "+flag+": ")
		t.Log(errOut)
	}

	w.starter("", "schedule", "delete", "-n", c.Name(), "--id", "tick")
	_, errOut, err := w.tryStarter("", "schedule", "pause", "-n", c.Name(), "--id", "tick")
	require.Error(t, err)
	require.Contains(t, errOut, "no such schedule: tick")
	w.eventually(func() bool { return w.starter("", "schedule", "list", "-n", c.Name(), "--json") == "" })
}

func TestTheTemporalCLIAloneSchedulesMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llmtest.Answer("Done"))
	w.worker()
	c := w.open("plain-schedule")
	w.deleteSchedules(c, "yearly")
	id := wire.ScheduleID(c.Name(), "yearly")
	w.temporalCommand("schedule", "create", "--schedule-id", id, "--cron", "0 0 1 1 *", "--workflow-id", id, "--type", "Send",
		"--task-queue", w.queue, "--overlap-policy", "Skip",
		"--input", fmt.Sprintf(`{"contextName":%q,"event":{"_tag":"UserMessageEvent","clientEventId":"same","content":"Happy new year"}}`, c.Name()))
	w.temporalCommand("schedule", "trigger", "--schedule-id", id)
	sent := w.await(c, func(e event.Event) bool { return e.Tag() == event.TagUserMessage })
	require.Equal(t, event.UserMessage{Content: "Happy new year"}, sent.Body)
	require.True(t, strings.HasPrefix(sent.ClientEventID, "schedule:yearly-"), sent.ClientEventID)
	w.await(c, func(e event.Event) bool { return e.Tag() == event.TagLLMRequestCompleted })
}

func TestAScheduledMessageIsSentOnceIfItsWorkerIsKilled_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	w := newWorld(t, llmtest.Func(echo))
	c := w.open("killed")
	w.deleteSchedules(c, "default")
	// Without an activity worker, the message waits; without a workflow worker, the context cannot
	// confirm it, so the activity worker signals, and hangs.
	stop := w.worker(func(o *contexts.Options) { o.Part = contexts.OnlyWorkflows })
	_, err := c.Schedule(w.ctx, client.Schedule{Every: time.Second, Message: event.UserMessage{Content: "Tick"}})
	require.NoError(t, err)
	w.eventually(func() bool { return len(w.schedule(c, "default").Info.RunningWorkflows) > 0 })
	firing := w.schedule(c, "default").Info.RunningWorkflows[0].WorkflowID
	require.NoError(t, c.PauseSchedule(w.ctx, ""))
	w.eventually(func() bool { return w.schedule(c, "default").Schedule.State.Paused })
	attempt := func(state enumspb.PendingActivityState) bool {
		d, err := w.temporal.DescribeWorkflowExecution(w.ctx, firing, "")
		require.NoError(t, err)
		pending := d.GetPendingActivities()
		return len(pending) == 1 && pending[0].GetState() == state
	}
	w.eventually(func() bool { return attempt(enumspb.PENDING_ACTIVITY_STATE_SCHEDULED) })
	stop()
	killed := w.processWith(workerSettings{Part: contexts.OnlyActivities, HangOnSignal: true})
	w.eventually(func() bool {
		_, err := w.temporal.DescribeWorkflowExecution(w.ctx, wire.WorkflowID(c.Name()), "")
		return err == nil && attempt(enumspb.PENDING_ACTIVITY_STATE_STARTED)
	})
	killed.kill()

	w.worker()
	require.NoError(t, w.temporal.GetWorkflow(w.ctx, firing, "").Get(w.ctx, nil))
	require.Len(t, w.awaitAllScheduled(c, "default"), 1)
	w.say(c, "Hello") // after everything that the context received before
	require.Len(t, w.scheduled(c), 1)
	attempts := int32(0)
	for _, e := range w.replayWorkflow(firing, "", "").Events {
		attempts = max(attempts, e.GetActivityTaskStartedEventAttributes().GetAttempt())
	}
	require.GreaterOrEqual(t, attempts, int32(2))
}
