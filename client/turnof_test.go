package client_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/clienttest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// turnLog is a log in memory.
type turnLog struct {
	*clienttest.Log
	unattended error
}

func (l turnLog) UnattendedSince(context.Context) (time.Time, error) {
	return time.Time{}, l.unattended
}

func turnLogOf(bodies ...event.Body) turnLog {
	l := turnLog{Log: clienttest.NewLog("demo", func(int) time.Time { return eventtest.Epoch })}
	record(l, bodies...)
	return l
}

// record appends events, whose ClientEventIDs are "client" and their content.
func record(l turnLog, bodies ...event.Body) {
	for _, body := range bodies {
		e := event.New(body)
		switch body := body.(type) {
		case event.UserMessage:
			e.ClientEventID = "client " + body.Content
		case event.InputRejected:
			e.ClientEventID = "client " + body.Input
		}
		l.Record(e)
	}
}

func says(text string) event.Body { return event.UserMessage{Content: text} }

func answers(request int, text string) event.Body {
	return event.AssistantMessage{Content: text, RequestID: requestID(request)}
}

func calls(tool string) event.Body {
	return event.ToolCall{ToolCallID: "call " + tool, ToolName: tool, RequestID: requestID(1)}
}

func returns(tool string) event.Body {
	return event.ToolResult{ToolCallID: "call " + tool, Value: []byte(`1`)}
}

func TestWhatBecameOfAnEvent(t *testing.T) {
	used := event.Usage{InputTokens: 10, OutputTokens: 2}
	step := event.LLMAttemptEnded{RequestID: requestID(1), Attempt: 1, Outcome: event.AttemptToolCalls, Usage: used}
	done := event.LLMRequestCompleted{RequestID: requestID(1), Usage: used}
	tools := event.SetTools{Tools: event.ToolList{{Pattern: "look"}, {Name: "ask"}}}
	asked := []event.Body{says("Hi"), started(1, 2), answers(1, "Wait"), calls("look"), calls("ask"), step}
	askedWith := func(settings ...event.Body) []event.Body { // after a first one, with others after the message
		all := append([]event.Body{settings[0], says("Hi")}, settings[1:]...)
		return append(append(all, started(1, 3)), asked[2:]...)
	}
	sum := func(attempts int) reducer.Usage {
		return reducer.Usage{Attempts: attempts, InputTokens: 10 * attempts, OutputTokens: 2 * attempts, Unpriced: attempts}
	}
	for name, test := range map[string]struct {
		log  []event.Body // after a SessionStarted
		id   int          // of the message
		want client.Turn
	}{
		"no request has it":                   {[]event.Body{says("Hi")}, 2, client.Turn{Status: client.TurnQueued, EventIDs: []string{id(2)}}},
		"a request that began before has not": {[]event.Body{says("A"), started(1, 2), says("Hi"), answers(1, "to A")}, 4, client.Turn{Status: client.TurnQueued, EventIDs: []string{id(4), id(5)}}},
		"it runs":                             {[]event.Body{says("Hi"), started(1, 2)}, 2, client.Turn{Status: client.TurnRunning, EventIDs: []string{id(2), id(3)}}},
		"it is answered":                      {[]event.Body{says("Hi"), started(1, 2), answers(1, "Hello"), done, says("B")}, 2, client.Turn{Status: client.TurnCompleted, EventIDs: []string{id(2), id(3), id(4), id(5)}, Answer: "Hello", Usage: sum(1)}},
		"after tools":                         {slices.Concat(asked, []event.Body{returns("look"), returns("ask"), started(1, 2), answers(1, "Hello"), done}), 2, client.Turn{Status: client.TurnCompleted, Answer: "Hello", Usage: sum(2)}},
		"a worker's tool":                     {[]event.Body{tools, says("Hi"), started(1, 3), calls("look"), step}, 3, client.Turn{Status: client.TurnRunning, Usage: sum(1)}},
		"a client's tool":                     {askedWith(tools), 3, client.Turn{Status: client.TurnWaiting, Usage: sum(1)}},
		"its tools changed":                   {askedWith(tools, event.SetTools{Tools: event.ToolList{{Pattern: "*"}}}), 3, client.Turn{Status: client.TurnRunning, Usage: sum(1)}},
		"an approval":                         {slices.Concat(asked, []event.Body{event.ApprovalRequested{ToolCallID: "call look", RequestID: requestID(1)}}), 2, client.Turn{Status: client.TurnWaiting, Usage: sum(1)}},
		"a decision":                          {slices.Concat(asked, []event.Body{event.ApprovalRequested{ToolCallID: "call look", RequestID: requestID(1)}, event.ApprovalDecided{ToolCallID: "call look", Decision: event.Approve}}), 2, client.Turn{Status: client.TurnRunning, Usage: sum(1)}},
		"all decisions":                       {slices.Concat(asked, []event.Body{event.ApprovalRequested{ToolCallID: "call look", RequestID: requestID(1)}, event.ApprovalDecided{Decision: event.Deny}}), 2, client.Turn{Status: client.TurnRunning, Usage: sum(1)}},
		"an expired call":                     {slices.Concat(asked, []event.Body{event.ApprovalRequested{ToolCallID: "call look", RequestID: requestID(1)}, returns("look")}), 2, client.Turn{Status: client.TurnRunning, Usage: sum(1)}},
		"it is interrupted":                   {[]event.Body{says("Hi"), started(1, 2), says("B"), answers(1, "Hel"), event.LLMRequestInterrupted{RequestID: requestID(1), Reason: event.ReasonNewUserInput, Usage: used}}, 2, client.Turn{Status: client.TurnInterrupted, Answer: "Hel", Usage: sum(1), Failure: &client.TurnFailure{Reason: "new_user_input"}}},
		"it failed":                           {[]event.Body{says("Hi"), started(1, 2), event.LLMRequestFailed{RequestID: requestID(1), Error: "down", Kind: event.FailureUnavailable, Retryable: true}}, 2, client.Turn{Status: client.TurnFailed, Usage: reducer.Usage{Attempts: 1}, Failure: &client.TurnFailure{Kind: event.FailureUnavailable, Reason: "down", Retryable: true}}},
		"it was terminated":                   {[]event.Body{says("Hi"), started(1, 2), event.SessionStarted{PreviousRunID: "run"}}, 2, client.Turn{Status: client.TurnFailed, Failure: &client.TurnFailure{Kind: event.FailureUnavailable, Reason: client.ErrUnanswered.Error()}}},
		"it requires no answer":               {[]event.Body{event.SystemPrompt{Content: "Briefly."}, says("Hi")}, 2, client.Turn{Status: client.TurnCompleted, EventIDs: []string{id(2)}}},
		"a cancelled request completed without it": {[]event.Body{says("A"), started(1, 2), says("Hi"), answers(1, "to A"), event.LLMRequestCompleted{RequestID: requestID(1), ThroughEventID: id(4)}}, 4,
			client.Turn{Status: client.TurnInterrupted, Failure: &client.TurnFailure{Reason: "cancelled"}}},
		"a request before it does not count": {[]event.Body{says("A"), started(1, 2), says("Hi"), answers(1, "to A"), done, started(2, 4), answers(2, "to Hi"),
			event.LLMRequestCompleted{RequestID: requestID(2), Usage: used}}, 4, client.Turn{Status: client.TurnCompleted, Answer: "to Hi", Usage: sum(1)}},
		"it is rejected":                 {[]event.Body{event.InputRejected{Reason: "busy", Input: "Hi"}}, 2, client.Turn{Status: client.TurnRejected, EventIDs: []string{id(2)}, Failure: &client.TurnFailure{Reason: "busy"}}},
		"the rejection of another input": {[]event.Body{says("Hi"), started(1, 2), event.InputRejected{Reason: "busy", Input: "B"}}, 2, client.Turn{Status: client.TurnRunning}},
	} {
		t.Run(name, func(t *testing.T) {
			l := turnLogOf(append([]event.Body{event.SessionStarted{}}, test.log...)...)
			got, err := client.TurnOf(t.Context(), l, id(test.id), 0)
			require.NoError(t, err)
			require.Equal(t, id(test.id), got.EventIDs[0])
			require.Equal(t, got.EventIDs[len(got.EventIDs)-1], got.Cursor)
			if test.want.EventIDs == nil {
				test.want.EventIDs = got.EventIDs
			}
			test.want.Cursor = got.Cursor
			require.Equal(t, test.want, got)
			if name == "it requires no answer" {
				return // it has no client event id
			}
			byClientID, err := client.TurnOf(t.Context(), l, "client Hi", 0)
			require.NoError(t, err)
			require.Equal(t, got, byClientID)
		})
	}
}

func TestTheTurnOfAnUnknownEvent(t *testing.T) {
	l := turnLogOf(event.SessionStarted{}, says("Hi"), started(1, 2), answers(1, "Hello"))
	for _, id := range []string{"client B", id(5), id(1), id(3), id(4), "other:0002"} {
		_, err := client.TurnOf(t.Context(), l, id, time.Hour)
		require.ErrorIs(t, err, client.ErrNoEvent, id)
	}
	_, err := client.TurnOf(t.Context(), turnLogOf(), "client B", time.Hour)
	require.ErrorIs(t, err, client.ErrNoContext)
}

func TestInputThatNoWorkerHasRecordedIsQueued(t *testing.T) {
	l := turnLogOf(event.SessionStarted{})
	stored := event.New(says("Hi"))
	stored.ClientEventID = "client Hi"
	l.Wait(client.Waiting{Input: func(context.Context) []event.Event { return []event.Event{stored} }})
	got, err := client.TurnOf(t.Context(), l, "client Hi", 0)
	require.NoError(t, err)
	require.Equal(t, client.Turn{Status: client.TurnQueued, Cursor: id(1)}, got)
	_, err = client.TurnOf(t.Context(), l, "client B", 0)
	require.ErrorIs(t, err, client.ErrNoEvent)
	_, err = client.TurnOf(t.Context(), l, id(2), 0)
	require.ErrorIs(t, err, client.ErrNoEvent, "an event id was recorded once")
	stored.ClientEventID = ""
	got, err = client.TurnOf(t.Context(), l, "client B", 0)
	require.NoError(t, err, "large input is not read")
	require.Equal(t, client.TurnQueued, got.Status)
}

func TestATurnOfATerminatedRunHasFailed(t *testing.T) {
	l := turnLogOf(event.SessionStarted{}, says("Hi"), started(1, 2))
	l.unattended = fmt.Errorf("look: %w", client.ErrUnanswered)
	got, err := client.TurnOf(t.Context(), l, id(2), time.Hour)
	require.NoError(t, err)
	require.Equal(t, client.TurnFailed, got.Status)
	l.unattended = errors.New("away")
	got, err = client.TurnOf(t.Context(), l, id(2), 0)
	require.NoError(t, err)
	require.Equal(t, client.TurnRunning, got.Status)
}

func TestATurnIsAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		then [][]event.Body // recorded one second after the other
		want client.TurnStatus
		took time.Duration
	}{
		"until its end":         {[][]event.Body{{started(1, 2)}, {answers(1, "Hello"), completed(1)}}, client.TurnCompleted, 2 * time.Second},
		"until a client acts":   {[][]event.Body{{started(1, 2), calls("look"), event.ApprovalRequested{ToolCallID: "call look", RequestID: requestID(1)}}}, client.TurnWaiting, time.Second},
		"for a client's result": {[][]event.Body{{started(1, 2), calls("ask")}}, client.TurnWaiting, time.Second},
		"for a limited time":    {[][]event.Body{{started(1, 2), calls("look")}}, client.TurnRunning, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := turnLogOf(event.SetTools{Tools: event.ToolList{{Name: "ask"}}}, says("Hi"))
				go func() {
					for _, bodies := range test.then {
						time.Sleep(time.Second) // bubble time
						record(l, bodies...)
					}
				}()
				began := time.Now()
				got, err := client.TurnOf(t.Context(), l, id(2), time.Minute)
				require.NoError(t, err)
				require.Equal(t, test.want, got.Status)
				require.Equal(t, test.took, time.Since(began))
			})
		})
	}
}

// cutLog has all events, of which those after the first ones are recorded while it is followed.
type cutLog struct {
	turnLog
	events []event.Event
	cut    int
}

func (l *cutLog) EventsAndWaiting(_ context.Context, from string, waiting func(client.Waiting)) iter.Seq2[event.Event, error] {
	return l.yield(l.events[:l.cut], from)
}

func (l *cutLog) Follow(_ context.Context, o client.FollowOptions) iter.Seq2[event.Event, error] {
	return l.yield(l.events, o.From)
}

func (l *cutLog) yield(events []event.Event, from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if event.Counter(e.ID) > event.Counter(from) && !yield(e, nil) {
				return
			}
		}
	}
}

func TestAnAwaitedTurnEqualsTheTurnInTheLog(t *testing.T) {
	statuses := map[client.TurnStatus]bool{}
	rapid.Check(t, func(t *rapid.T) {
		l := &cutLog{turnLog: turnLogOf(), events: eventtest.Log("demo").Draw(t, "log")}
		asking := []int{1}
		for i, e := range l.events {
			if event.RequiresAnswer(e.Body) {
				asking = append(asking, i+1)
			}
		}
		sent := rapid.SampledFrom(asking).Draw(t, "sent")
		l.cut = rapid.IntRange(sent, len(l.events)).Draw(t, "recorded")
		got, err := client.TurnOf(context.Background(), l, id(sent), time.Hour)
		if err != nil {
			require.ErrorIs(t, err, client.ErrNoEvent)
			return
		}
		l.cut = event.Counter(got.Cursor)
		want, err := client.TurnOf(context.Background(), l, id(sent), 0)
		require.NoError(t, err)
		require.Equal(t, want, got)
		statuses[got.Status] = true
	})
	require.Greater(t, len(statuses), 3, "%v", statuses)
}

// resetLog is reset when it is followed.
type resetLog struct {
	turnLog
	follows int
}

func (l *resetLog) Follow(context.Context, client.FollowOptions) iter.Seq2[event.Event, error] {
	l.follows++
	l.turnLog = turnLogOf(event.SessionStarted{}, says("Hi"), event.Note{}, started(1, 2), answers(1, "Hello"), completed(1))
	return func(yield func(event.Event, error) bool) { yield(recorded(3, event.Note{}), nil) }
}

func TestAnAwaitedTurnFollowsAReset(t *testing.T) {
	l := &resetLog{turnLog: turnLogOf(event.SessionStarted{}, says("Hi"), started(1, 2), answers(1, "Wait"), calls("look"))}
	got, err := client.TurnOf(t.Context(), l, id(2), time.Hour)
	require.NoError(t, err)
	require.Equal(t, client.TurnCompleted, got.Status)
	require.Equal(t, "Hello", got.Answer)
	require.Equal(t, 1, l.follows)
}
