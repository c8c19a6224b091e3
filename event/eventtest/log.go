package eventtest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Log generates logs of up to about a hundred events.
func Log(contextName string) *rapid.Generator[[]event.Event] {
	return rapid.Custom(func(t *rapid.T) []event.Event {
		w := writer{T: t, context: contextName, at: Epoch}
		w.add(event.SessionStarted{})
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.step()
		}
		return w.log
	})
}

// writer writes a log as a session does.
type writer struct {
	*rapid.T
	context string
	at      time.Time
	log     []event.Event
	// through is the newest event in the running request; "" if none runs.
	through  string
	requests int
	attempt  int // of the running request
	calls    []string
	speeches []string // ids of assistant messages
	made     int      // number of calls
}

func (w *writer) add(body event.Body) string {
	w.at = w.at.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(w.T, "pause")))
	id := event.FormatID(w.context, len(w.log)+1)
	parent := ""
	if len(w.log) > 0 {
		parent = w.log[len(w.log)-1].ID
	}
	w.log = append(w.log, event.Event{ID: id, Timestamp: w.at, ContextName: w.context, ParentID: parent, Body: body})
	return id
}

func (w *writer) step() {
	switch rapid.SampledFrom([]string{
		"user", "user", "user", "system", "file", "config", "call", "result", "client says", "request", "request", "rejected",
	}).Draw(w.T, "step") {
	case "user":
		w.add(UserMessage().Draw(w.T, "user"))
	case "system":
		w.add(event.SystemPrompt{Content: rapid.SampledFrom([]string{"", "You are helpful", "Be brief"}).Draw(w.T, "prompt")})
	case "file":
		w.add(Of[event.FileAttachment]().Draw(w.T, "file"))
	case "config":
		w.add(SettingBody().Draw(w.T, "config"))
	case "client says":
		w.speeches = append(w.speeches, w.add(event.AssistantMessage{Content: text(w.T)}))
	case "call":
		call := event.ToolCall{ToolCallID: fmt.Sprintf("call_%d", w.made), ToolName: "weather"}
		if len(w.calls) > 0 && rapid.IntRange(0, 5).Draw(w.T, "again") == 0 {
			call.ToolCallID = w.calls[0]
		}
		w.made++
		if rapid.Bool().Draw(w.T, "has parameters") {
			call.Parameters = Value().Draw(w.T, "parameters")
		}
		if len(w.speeches) > 0 && rapid.Bool().Draw(w.T, "names message") {
			call.MessageID = rapid.SampledFrom(w.speeches).Draw(w.T, "message")
		}
		w.calls = append(w.calls, call.ToolCallID)
		w.add(call)
	case "result":
		if len(w.calls) == 0 {
			return
		}
		id := rapid.SampledFrom(w.calls).Draw(w.T, "call")
		w.add(event.ToolResult{ToolCallID: id, Value: Value().Draw(w.T, "value")})
	case "request":
		w.request()
	case "rejected":
		w.add(event.InputRejected{Reason: "not an event"})
	}
}

// request starts a request, or ends the one that runs.
func (w *writer) request() {
	id := event.FormatRequestID(w.context, w.requests)
	if w.through == "" {
		w.requests++
		w.attempt = 0
		w.sendAttempt(event.FormatRequestID(w.context, w.requests))
		return
	}
	answer := event.AssistantMessage{Content: "a" + text(w.T), RequestID: id, ThroughEventID: w.through}
	usage := Usage().Draw(w.T, "usage")
	switch rapid.IntRange(0, 11).Draw(w.T, "end") {
	case 11: // withdrawn
		w.sendAttempt(id)
		return
	case 10: // another model than planned
		w.attempt--
		w.start(id, "", w.through)
		return
	case 9:
		w.add(event.LLMAttemptEnded{RequestID: id, Attempt: w.attempt, Outcome: event.AttemptFailed, Kind: event.FailureBadRequest, Usage: usage})
		refused := Of[event.ContentRefused]().Draw(w.T, "refused")
		refused.RequestID = id
		if !refused.Content.OfTools() {
			refused.ThroughEventID = rapid.SampledFrom(w.log).Draw(w.T, "through").ID
			if refused.FromEventID != "" {
				refused.FromEventID = event.FormatID(w.context, rapid.IntRange(1, event.Counter(refused.ThroughEventID)).Draw(w.T, "from"))
			}
		}
		w.add(refused)
		w.sendAttempt(id)
		return
	case 8:
		w.compact(id, usage)
		return
	case 6, 7:
		w.callTools(id, usage)
		w.sendAttempt(id)
		return
	case 0, 1:
		w.speeches = append(w.speeches, w.add(answer))
		w.add(event.LLMRequestCompleted{RequestID: id, FinishReason: "stop", Usage: usage})
	case 2:
		answer.Partial = true
		w.speeches = append(w.speeches, w.add(answer))
		w.add(event.LLMRequestInterrupted{RequestID: id, PartialResponse: answer.Content, Reason: event.ReasonNewUserInput, Usage: usage})
	case 3:
		w.add(event.LLMAttemptEnded{RequestID: id, Attempt: w.attempt, Outcome: event.AttemptFailed, Error: "busy", Usage: usage})
		w.sendAttempt(id)
		return
	case 4:
		w.add(event.LLMRequestFellBack{RequestID: id, FromProvider: "openai", ToProvider: "ollama", Error: "no", Usage: usage})
		w.sendAttempt(id)
		return
	default:
		w.add(event.LLMRequestFailed{RequestID: id, Error: "no", Usage: usage})
	}
	w.through = ""
}

// compact ends an attempt that was too long, shortens the conversation and sends the next attempt.
// Later events refer to no removed message or call.
func (w *writer) compact(requestID string, usage event.Usage) {
	var messages []string
	for _, e := range w.log {
		if e.Tag() == event.TagUserMessage || e.Tag() == event.TagAssistantMessage {
			messages = append(messages, e.ID)
		}
	}
	w.add(event.LLMAttemptEnded{RequestID: requestID, Attempt: w.attempt, Outcome: event.AttemptFailed, Kind: event.FailureContextTooLong, Usage: usage})
	if len(messages) == 0 {
		w.sendAttempt(requestID)
		return
	}
	body := Of[event.Compacted]().Draw(w.T, "compacted")
	body.RequestID, body.ThroughEventID = requestID, rapid.SampledFrom(messages).Draw(w.T, "covered")
	if body.Strategy == event.StrategySummarise {
		w.send(requestID, event.PurposeCompaction)
	}
	w.add(body)
	if body.Strategy == event.StrategySummarise {
		w.add(event.LLMAttemptEnded{RequestID: requestID, Attempt: w.attempt, Outcome: event.AttemptCompacted, Usage: usage})
	}
	if body.Strategy != event.StrategyDropToolResults {
		w.calls, w.speeches = nil, nil
	}
	w.sendAttempt(requestID)
}

// callTools ends an attempt with an answer that has tool calls, and gives each a result. Some wait
// for an approval; other events come in between.
func (w *writer) callTools(requestID string, usage event.Usage) {
	answer := event.AssistantMessage{Content: text(w.T), RequestID: requestID, ThroughEventID: w.through}
	messageID := w.add(answer)
	w.speeches = append(w.speeches, messageID)
	var ids []string
	for range rapid.IntRange(1, 3).Draw(w.T, "calls") {
		call := event.ToolCall{
			ToolCallID: fmt.Sprintf("step_%d", len(w.log)), MessageID: messageID, ToolName: "weather", RequestID: requestID,
			Parameters: Value().Draw(w.T, "parameters"),
		}
		ids = append(ids, call.ToolCallID)
		w.add(call)
	}
	w.add(event.LLMAttemptEnded{RequestID: requestID, Attempt: w.attempt, Outcome: event.AttemptToolCalls, Usage: usage})
	for _, id := range ids {
		if rapid.IntRange(0, 2).Draw(w.T, "waits") == 0 {
			w.add(event.ApprovalRequested{ToolCallID: id, RequestID: requestID, ExpiresAt: w.at.Add(time.Hour)})
			decided := Of[event.ApprovalDecided]().Draw(w.T, "decision")
			if decided.ToolCallID = id; decided.Decision == event.Approve {
				decided.Parameters = []byte(`{"city":"Rome"}`)
			}
			w.add(decided)
		}
		if rapid.IntRange(0, 3).Draw(w.T, "input before the result") == 0 {
			w.add(UserMessage().Draw(w.T, "user"))
		}
		w.add(event.ToolResult{ToolCallID: id, Value: Value().Draw(w.T, "value"), DurationMs: 1200})
	}
	w.calls = append(w.calls, ids...)
}

// sendAttempt sends the next attempt of a request, which includes all events.
func (w *writer) sendAttempt(requestID string) { w.send(requestID, "") }

func (w *writer) send(requestID string, purpose event.Purpose) {
	w.start(requestID, purpose, w.log[len(w.log)-1].ID)
}

func (w *writer) start(requestID string, purpose event.Purpose, through string) {
	w.attempt++
	w.through = through
	w.add(event.LLMRequestStarted{
		RequestID: requestID, ProviderID: "openai", Model: rapid.SampledFrom([]string{"gpt-4o-mini", "gpt-4o"}).Draw(w.T, "model"),
		ThroughEventID: w.through, Attempt: w.attempt, Purpose: purpose,
	})
}
