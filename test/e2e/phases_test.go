package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// The run continues as new while the call waits for its approval, or for its client. A worker is
// killed in a phase of the call, and another one continues.
func TestAWorkerIsKilledInEachPhaseOfACall_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	const unknown = event.OutcomeUnknown
	for phase, test := range map[string]struct {
		tool, result string
		calls        int
	}{
		"waiting for approval":       {"probe", "result of a", 1},
		"waiting for a client":       {"ask_user", "blue", 0},
		"scheduled":                  {"probe", "result of a", 1},
		"running":                    {"probe", unknown, 1},
		"running, idempotent":        {"probe_again", "result of a", 2},
		"ended, idempotent":          {"probe_again", "result of a", 2},
		"ended, but not reported":    {"probe", unknown, 1},
		"reported, but not recorded": {"probe", "result of a", 1},
		"recorded":                   {"probe", "result of a", 1},
	} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			gate, reported := make(chan struct{}), make(chan struct{}, 10)
			p := newProbe(t, held(gate))
			call := p.call(test.tool, "a")
			if test.calls == 0 {
				call = llmtest.Call{ID: "call_a", Name: askUser.Name, Arguments: `{"question":"Which?"}`}
			}
			steps := []llmtest.Step{llmtest.Calls(call)}
			if phase == "recorded" {
				steps = append(steps, llmtest.Answer("Do", "ne.").HoldAfter(1, llmtest.NewGate()))
			}
			w := newWorld(t, append(steps, llmtest.Answer("Done."))...)
			settings := workerSettings{ContinueAfter: shortRun}
			if strings.HasPrefix(phase, "ended") {
				settings.HoldResults, settings.Holds = w.notified(reported), "CallTool"
			}
			workflows, activities := settings, settings
			workflows.Part, activities.Part = contexts.OnlyWorkflows, contexts.OnlyActivities
			first := map[contexts.Part]*process{workflows.Part: w.processWith(workflows), activities.Part: w.processWith(activities)}
			c := w.open("phases")
			w.send(c, event.New(event.SetTools{Tools: event.ToolList{{Pattern: "*"}, askUser}, Approve: event.ApprovalRules{{Tool: "probe*"}}}))
			turn := w.ask(c, "Look")
			turn.until(isTag(event.TagLLMAttemptEnded))
			w.continueAsNew(c)
			approve := event.New(event.ApprovalDecided{Decision: event.Approve})
			kill := func(parts ...contexts.Part) {
				for _, part := range parts {
					first[part].kill()
					delete(first, part)
				}
			}
			switch phase {
			case "waiting for approval":
				kill(workflows.Part, activities.Part)
				_, err := c.Send(w.ctx, approve)
				require.NoError(t, err)
				close(gate)
			case "waiting for a client":
				kill(workflows.Part, activities.Part)
				_, err := c.Send(w.ctx, event.New(event.ToolResult{ToolCallID: "call_a", Value: []byte(`"blue"`)}))
				require.NoError(t, err)
			case "scheduled":
				kill(activities.Part)
				w.send(c, approve)
				w.awaitHistory(c, isScheduled("CallTool"))
				kill(workflows.Part)
				close(gate)
			case "running", "running, idempotent":
				w.send(c, approve)
				p.awaitCall(w.ctx)
				kill(workflows.Part, activities.Part)
				close(gate)
			case "ended, but not reported", "ended, idempotent":
				close(gate)
				w.send(c, approve)
				w.wait(reported)
				kill(workflows.Part, activities.Part)
			case "reported, but not recorded":
				w.send(c, approve)
				p.awaitCall(w.ctx)
				kill(workflows.Part)
				close(gate)
				w.awaitHistory(c, func(h *historypb.HistoryEvent) bool {
					return h.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
				})
				kill(activities.Part)
			case "recorded":
				close(gate)
				w.send(c, approve)
				_, err := w.model.Request(w.ctx, 2)
				require.NoError(t, err)
				kill(workflows.Part, activities.Part)
			}
			require.Empty(t, first)
			w.processWith(workerSettings{ContinueAfter: shortRun})
			require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
			requests := w.model.Requests()
			require.Len(t, requests, len(steps)+1)
			require.Equal(t, "tool: "+test.result, contents(requests[len(steps)])[2])
			require.Equal(t, 1, countOf(w, c, event.TagToolResult))
			var want []probeCall
			for range test.calls {
				want = append(want, probeCall{"call_a", "a"})
			}
			require.Equal(t, want, p.seen())
			for i, run := range w.runs(c) {
				story := ""
				if i == 0 {
					story = "killed-" + strings.NewReplacer(" ", "-", ",", "").Replace(phase)
				}
				w.replayRun(c, run, story)
			}
		})
	}
}

// A worker is killed in a phase of an attempt, and another one continues. Only an attempt that was sent without a
// recorded result is sent again.
func TestAWorkerIsKilledInEachPhaseOfAnAttempt_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	const hello = "I was saying: hello."
	for phase, test := range map[string]struct {
		requests int
		want     string // after the message
	}{
		"scheduled":                  {1, "LLMRequestStarted 1 scripted attempt 1\nAssistantMessage \"" + hello + "\"\n"},
		"quiet":                      {1, "LLMRequestStarted 1 scripted attempt 1\nLLMAttemptEnded 1 lost\nLLMRequestStarted 1 scripted attempt 2\nAssistantMessage \"" + hello + "\"\n"},
		"answering":                  {2, "LLMRequestStarted 1 scripted attempt 1\nLLMAttemptEnded 1 lost\nLLMRequestStarted 1 scripted attempt 2\nAssistantMessage \"" + hello + "\"\n"},
		"ended, but not reported":    {2, "LLMRequestStarted 1 scripted attempt 1\nLLMAttemptEnded 1 lost\nLLMRequestStarted 1 scripted attempt 2\nAssistantMessage \"" + hello + "\"\n"},
		"reported, but not recorded": {1, "LLMRequestStarted 1 scripted attempt 1\nAssistantMessage \"" + hello + "\"\n"},
	} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			gate, reported := llmtest.NewGate(), make(chan struct{}, 10)
			w := newWorld(t, llmtest.Func(func(llmtest.Request) llmtest.Step {
				return llmtest.Answer("I was", " saying: hello.").HoldAfter(1, gate)
			}))
			settings := workerSettings{}
			if strings.HasPrefix(phase, "ended") {
				settings.HoldResults, settings.Holds = w.notified(reported), "Generate"
			}
			onlyWorkflows, onlyActivities := settings, settings
			onlyWorkflows.Part, onlyActivities.Part = contexts.OnlyWorkflows, contexts.OnlyActivities
			decides, answers := w.processWith(onlyWorkflows), w.processWith(onlyActivities)
			c := w.open("attempt")
			quiet := int64(0)
			if phase == "quiet" {
				quiet = 20_000
			}
			w.send(c, event.New(event.SetDeliveryPolicy{QuietPeriodMs: &quiet, MaxWaitMs: &quiet}))
			if phase == "scheduled" {
				answers.kill()
			}
			turn := w.ask(c, "Hello")
			switch phase {
			case "scheduled":
				w.awaitHistory(c, isScheduled("Generate"))
			case "quiet":
				w.awaitStarted(c, "Generate")
				answers.kill()
			case "answering":
				turn.underWay()
				answers.kill()
			case "ended, but not reported":
				gate.Open()
				w.wait(reported)
				answers.kill()
			case "reported, but not recorded":
				turn.underWay()
				decides.kill()
				gate.Open()
				w.awaitHistory(c, func(h *historypb.HistoryEvent) bool {
					return h.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
				})
				answers.kill()
			}
			if phase != "reported, but not recorded" {
				decides.kill()
			}
			gate.Open()
			w.process(contexts.Both)
			require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
			require.Equal(t, hello, deltaText(turn.seen))
			require.Len(t, w.model.Requests(), test.requests)
			_, after, _ := strings.Cut(withoutPositions(w.log(c)), "UserMessage \"Hello\"\n")
			require.Equal(t, test.want+"LLMRequestCompleted 1 stop", strings.TrimSpace(strings.ReplaceAll(after, "SetDeliveryPolicy\n", "")))
			w.replay(c, "killed-attempt-"+strings.NewReplacer(" ", "-", ",", "").Replace(phase))
		})
	}
}

// awaitStarted waits until a worker has an activity of a type.
func (w *world) awaitStarted(c *client.Context, activityType string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		d := w.described(c, "")
		return slices.ContainsFunc(d.GetPendingActivities(), func(p *workflowpb.PendingActivityInfo) bool {
			return p.GetActivityType().GetName() == activityType && p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED
		})
	}, testTimeout, 20*time.Millisecond)
}

// continueAsNew sends notes until the run continues as new.
func (w *world) continueAsNew(c *client.Context) {
	w.t.Helper()
	for before := len(w.runs(c)); len(w.runs(c)) == before; {
		w.send(c, note("", "x"))
	}
}

// awaitHistory waits until the newest run of a context has an event.
func (w *world) awaitHistory(c *client.Context, found func(*historypb.HistoryEvent) bool) {
	w.t.Helper()
	w.awaitHistoryOf(wire.WorkflowID(c.Name()), found)
}

func (w *world) awaitHistoryOf(workflowID string, found func(*historypb.HistoryEvent) bool) {
	w.t.Helper()
	history := w.temporal.GetWorkflowHistory(w.ctx, workflowID, "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		h, err := history.Next()
		require.NoError(w.t, err)
		if found(h) {
			return
		}
	}
	w.t.Fatal("the run ended before the event")
}

func isScheduled(activityType string) func(*historypb.HistoryEvent) bool {
	return func(h *historypb.HistoryEvent) bool {
		return h.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == activityType
	}
}

// notified returns a URL whose requests are sent to a channel.
func (w *world) notified(requests chan<- struct{}) string {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests <- struct{}{} }))
	w.t.Cleanup(s.Close)
	return s.URL
}

// holdResults notifies a URL when an activity of a type has ended, and never reports its result.
type holdResults struct {
	interceptor.InterceptorBase
	url, of string
}

func (i *holdResults) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &heldResults{interceptor.ActivityInboundInterceptorBase{Next: next}, i}
}

type heldResults struct {
	interceptor.ActivityInboundInterceptorBase
	*holdResults
}

func (i *heldResults) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	result, err := i.Next.ExecuteActivity(ctx, in)
	if activity.GetInfo(ctx).ActivityType.Name != i.of {
		return result, err
	}
	if response, err := http.Post(i.url, "", nil); err == nil {
		_ = response.Body.Close()
	}
	select {}
}
