package transcript_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// The reference implementation is render. It is quadratic and never patches.
func TestPatchesUpdateAnyVersionToTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyEvents(t)
		p := transcript.NewPatcher()
		documents := []string{marshal(t, p.Document())} // by version
		followed := documents[0]                        // by a viewer that applies every patch
		for i, e := range events {
			before := p.Version()
			patch := p.Apply(e)
			if p.Version() == before {
				require.Empty(t, patch)
				continue
			}
			require.Equal(t, before+1, p.Version())
			documents = append(documents, marshal(t, p.Document()))
			followed = apply(t, followed, patch)
			want := marshal(t, render(events[:i+1]))
			require.Equal(t, want, joined(t, followed), "after event %d", i)
			version := rapid.IntRange(0, p.Version()).Draw(t, "version")
			require.Equal(t, want, joined(t, apply(t, documents[version], since(t, p, version))), "since version %d", version)
		}
		want := marshal(t, render(events))
		for version, document := range documents {
			require.Equal(t, want, joined(t, apply(t, document, since(t, p, version))), "since version %d", version)
		}
	})
}

func TestADocumentDependsOnlyOnTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, loaded := transcript.NewPatcher(), transcript.NewPatcher()
		for _, e := range anyEvents(t) {
			live.Apply(e)
			if e.ID != "" {
				loaded.Apply(e)
			}
		}
		streams := func(item transcript.Item) bool { return item.Content.Chunks != nil }
		got := live.Document()
		got.Entries = slices.DeleteFunc(got.Entries, streams)
		for i := range got.Entries {
			got.Entries[i].Content.Progress = ""
		}
		require.Equal(t, marshal(t, loaded.Document()), marshal(t, got))
	})
}

func TestReduceDoesNotModifyItsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyEvents(t)
		var states []transcript.State
		var effects [][]transcript.Effect
		var s transcript.State
		for _, e := range events {
			next, effect := transcript.Reduce(s, e)
			states, effects = append(states, s), append(effects, effect)
			s = next
		}
		for i := range events {
			// Reductions from the same state are independent.
			for _, other := range events[i:] {
				transcript.Reduce(states[i], other)
			}
		}
		for i, e := range events {
			_, again := transcript.Reduce(states[i], e)
			require.Equal(t, effects[i], again, "event %d", i)
		}
	})
}

// anyEvents generates a log with repeated events and arbitrary requests and tools,
// and deltas of any attempt.
func anyEvents(t *rapid.T) []event.Event {
	var events []event.Event
	last := 0
	text := func() string { return rapid.StringN(0, 5, 12).Draw(t, "text") }
	request := func() string { return event.FormatRequestID("demo", rapid.IntRange(1, 3).Draw(t, "request")) }
	maybeRequest := func() string { return rapid.SampledFrom([]string{"", request()}).Draw(t, "maybe a request") }
	attempt := func() int { return rapid.IntRange(1, 3).Draw(t, "attempt") }
	through := func() string {
		if n := rapid.IntRange(0, last+2).Draw(t, "through"); n > 0 {
			return event.FormatID("demo", n)
		}
		return ""
	}
	tool := func() string { return rapid.SampledFrom([]string{"weather", "time"}).Draw(t, "tool") }
	call := func() string { return fmt.Sprintf("call_%d", rapid.IntRange(0, 3).Draw(t, "call")) }
	fields := func() map[string]json.RawMessage {
		return rapid.SampledFrom([]map[string]json.RawMessage{
			nil, {"sessionId": json.RawMessage(`"s1"`)}, {"sessionId": json.RawMessage(`"s2"`)}, {"sessionId": json.RawMessage(`7`), "a": json.RawMessage(`[1]`)},
		}).Draw(t, "fields")
	}
	delta := event.TextDelta{} // the previous one; some are consecutive
	answer := ""               // the newest
	for range rapid.IntRange(0, 60).Draw(t, "steps") {
		var e event.Event
		switch rapid.SampledFrom([]string{
			"user", "file", "note", "settings", "started", "delta", "next delta", "next delta", "next delta", "next delta", "answer",
			"completed", "interrupted", "failed", "fell back", "call", "result", "again",
			"tool calls", "tools", "approval", "decision", "progress", "hook",
		}).Draw(t, "step") {
		case "user":
			e.Body = event.UserMessage{Content: text()}
		case "file":
			e.Body = event.FileAttachment{
				Source: event.Source{Type: event.SourceURL, URL: "https://example.com/cat.png"}, MediaType: "image/png", FileName: text(),
			}
		case "note":
			kinds := []event.NoteKind{event.NoteThinking, event.NoteError, event.NoteWarning, event.NoteSystem, event.NoteUsage}
			e.Body = event.Note{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Content: text()}
			if rapid.Bool().Draw(t, "malformed") {
				e.Extra = map[string]json.RawMessage{"line": json.RawMessage(`"{"`)}
			}
		case "settings":
			e.Body = eventtest.ConfigBody().Draw(t, "settings")
		case "started":
			e.Body = event.LLMRequestStarted{RequestID: request(), ThroughEventID: through(), Attempt: attempt()}
		case "delta":
			delta = event.TextDelta{
				RequestID: request(), Attempt: attempt(), Index: rapid.IntRange(0, 4).Draw(t, "index"), Delta: text(),
				Reset: rapid.Bool().Draw(t, "reset"), ThroughEventID: through(),
			}
			e.Body = ofKind(t, delta)
		case "next delta":
			if delta.RequestID == "" {
				delta = event.TextDelta{RequestID: request(), Attempt: 1, Index: -1, ThroughEventID: through()}
			}
			// 0 repeats a delta, 2 skips one.
			delta.Index = max(0, delta.Index+rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(t, "index increment"))
			delta.Delta, delta.Reset = text(), rapid.IntRange(0, 4).Draw(t, "reset") == 0
			e.Body = ofKind(t, delta)
		case "answer":
			body := event.AssistantMessage{Content: text(), ThroughEventID: through(), Partial: rapid.Bool().Draw(t, "partial")}
			if rapid.IntRange(0, 3).Draw(t, "has a request") > 0 {
				body.RequestID = request()
			}
			if rapid.Bool().Draw(t, "has reasoning") {
				body.Reasoning = text()
			}
			e.Body = body
			answer = event.FormatID("demo", last+1)
		case "completed":
			e.Body = event.LLMRequestCompleted{RequestID: request(), Usage: event.Usage{OutputTokens: 7}}
		case "interrupted":
			e.Body = event.LLMRequestInterrupted{RequestID: request(), Reason: event.ReasonCancelled}
		case "failed":
			e.Body = event.LLMRequestFailed{RequestID: request(), Error: text()}
		case "fell back":
			e.Body = event.LLMRequestFellBack{RequestID: request(), FromProvider: "a", ToProvider: "b", Usage: event.Usage{
				InputTokens: rapid.IntRange(0, 2).Draw(t, "input"), CostMicros: new(int64(5)),
			}}
		case "call":
			e.Body = event.ToolCall{
				ToolCallID: call(), MessageID: rapid.SampledFrom([]string{"", answer, "demo:0001", "msg_1"}).Draw(t, "message"),
				ToolName: tool(), Parameters: eventtest.Value().Draw(t, "parameters"), RequestID: maybeRequest(),
			}
			e.Extra = fields()
		case "result":
			e.Body = event.ToolResult{
				ToolCallID: call(), Value: eventtest.Value().Draw(t, "value"), DurationMs: rapid.Int64Range(0, 2).Draw(t, "duration"),
			}
			e.Extra = fields()
		case "tool calls":
			usage := event.Usage{InputTokens: rapid.IntRange(0, 9).Draw(t, "input")}
			if rapid.Bool().Draw(t, "has a cost") {
				usage.CostMicros = new(int64(3))
			}
			outcome := rapid.SampledFrom([]event.AttemptOutcome{event.AttemptToolCalls, event.AttemptFailed}).Draw(t, "outcome")
			e.Body = event.LLMAttemptEnded{RequestID: request(), Attempt: attempt(), Outcome: outcome, Usage: usage, DurationMs: 5}
		case "tools":
			e.Body = rapid.SampledFrom([]event.Body{event.SetTools{}, event.SetTools{Tools: event.ToolList{{Name: "weather"}, {Pattern: "time"}}}}).Draw(t, "tools")
		case "hook":
			body := eventtest.HookApplied().Draw(t, "hook")
			body.RequestID = request()
			e.Body = body
		case "approval":
			e.Body = event.ApprovalRequested{ToolCallID: call(), RequestID: maybeRequest(), ExpiresAt: eventtest.Epoch}
		case "decision":
			body := event.ApprovalDecided{ToolCallID: rapid.SampledFrom([]string{"", call()}).Draw(t, "decided call"), Decision: event.Deny, Reason: text()}
			if rapid.Bool().Draw(t, "approves") {
				body.Decision, body.DecidedBy = event.Approve, "ann"
				body.Parameters = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"edited":1}`)}).Draw(t, "edited")
			}
			e.Body = body
		case "progress":
			e.Body = event.ToolProgress{ToolCallID: call(), RequestID: maybeRequest(), Index: rapid.IntRange(0, 3).Draw(t, "index"), Text: text()}
		case "again":
			if len(events) == 0 {
				continue
			}
			events = append(events, rapid.SampledFrom(events).Draw(t, "again"))
			continue
		}
		if e.Tag().Class() != event.ClassEphemeral {
			last++
			e.ID, e.Timestamp = event.FormatID("demo", last), eventtest.Epoch.Add(time.Duration(last)*time.Second)
		}
		events = append(events, e)
	}
	return events
}

// ofKind returns a delta of text or of reasoning.
func ofKind(t *rapid.T, d event.TextDelta) event.Body {
	if rapid.Bool().Draw(t, "is reasoning") {
		return event.ReasoningDelta(d)
	}
	return d
}

// deltaOf is the inverse of ofKind.
func deltaOf(body event.Body) (d event.TextDelta, kind transcript.Kind, ok bool) {
	switch body := body.(type) {
	case event.TextDelta:
		return body, transcript.AssistantMessage, true
	case event.ReasoningDelta:
		return event.TextDelta(body), transcript.Thinking, true
	}
	return d, "", false
}

func render(events []event.Event) transcript.Document {
	var o oracle
	for _, e := range events {
		if e.ID == "" || event.Counter(e.ID) > o.newest(len(o.events)) {
			o.events = append(o.events, e)
		}
	}
	var shown []positionedEntry
	streams := o.streams()
	results, resultAt := o.results()
	for i, e := range o.events {
		entry := positionedEntry{after: o.position(i)}
		switch body := e.Body.(type) {
		case event.TextDelta, event.ReasoningDelta:
			stream, ok := streams[i]
			if !ok {
				continue
			}
			entry.Entry = stream
		case event.UserMessage:
			entry.Entry = ofType(transcript.UserMessage, body.Content)
			entry.Attachments = o.attachments(i)
		case event.AssistantMessage:
			if body.Reasoning != "" {
				thought := entry
				thought.Entry = ofType(transcript.Thinking, body.Reasoning)
				thought.Timestamp, thought.Partial = e.Timestamp, body.Partial && body.Content == ""
				shown = append(shown, thought)
			}
			if body.Content == "" {
				continue
			}
			entry.Entry = ofType(transcript.AssistantMessage, body.Content)
			entry.Partial = body.Partial
		case event.ToolCall:
			entry.Metadata = metadata(e)
			result, isCall := results[i]
			if !isCall {
				entry.Entry = warning(fmt.Sprintf("Ignored a call of the tool %s: the tool call %q has no result yet", body.ToolName, body.ToolCallID), e)
				entry.after = o.newest(i + 1)
				break
			}
			action := &transcript.ActionType{Action: transcript.Tool, Arguments: body.Parameters}
			entry.Entry = ofType(transcript.ToolUse, body.ToolName)
			entry.EntryType.ToolName, entry.EntryType.ActionType, entry.EntryType.Status = body.ToolName, action, transcript.Created
			entry.Metadata = metadata(e)
			if body.RequestID != "" {
				entry.EntryType.ToolCallID = body.ToolCallID
				if body.ToolName == "weather" && o.weatherIsClients(i) {
					entry.EntryType.Status = transcript.PendingClient
				}
			}
			o.live(i, resultAt, &entry.Entry)
			approval := entry.EntryType.Approval
			if result != nil {
				outcome := result.Body.(event.ToolResult)
				entry.EntryType.Status, action.Result = transcript.Success, outcome.Value
				entry.ResultTimestamp = result.Timestamp
				isTimed := body.RequestID == "" || body.ToolName == "weather" && o.weatherIsClients(i)
				if entry.EntryType.DurationMs = outcome.DurationMs; outcome.DurationMs == 0 && isTimed {
					entry.EntryType.DurationMs = max(0, result.Timestamp.Sub(e.Timestamp).Milliseconds())
				}
				entry.Progress = ""
				if approval != nil {
					approval.Arguments = ""
					if approval.Decision == event.Deny {
						entry.EntryType.Status = transcript.Denied
					}
				}
			}
		case event.LLMRequestCompleted, event.LLMRequestInterrupted, event.LLMRequestFailed:
			// The stories cover the text of these events.
			_, effects := transcript.Reduce(transcript.State{}, o.withSteps(i))
			last := len(effects) - 1
			if last == 1 {
				end := entry
				end.Entry = effects[0].(transcript.AppendEntry).Entry
				end.Timestamp = e.Timestamp
				shown = append(shown, end)
			}
			entry.Entry = effects[last].(transcript.AppendEntry).Entry
			steps, failed := o.steps(i)
			_, isCompleted := body.(event.LLMRequestCompleted)
			if isCompleted && steps > 0 {
				steps++
			}
			if !isCompleted && last == 0 {
				break // no usage
			}
			figures := ""
			if steps > 1 {
				entry.EntryType.Steps = steps
				figures = fmt.Sprintf(" in %d steps", steps)
			}
			switch entry.EntryType.FailedAttempts = failed; failed {
			case 0:
			case 1:
				figures += ", including a failed attempt"
			default:
				figures += fmt.Sprintf(", including %d failed attempts", failed)
			}
			if !isCompleted {
				entry.Content += figures
				break
			}
			before, after, _ := strings.Cut(entry.Content, " out")
			took := ", " + duration(entry.EntryType.DurationMs)
			entry.Content = before + " out" + strings.Replace(after, took, figures+took, 1)
		case event.ToolResult, event.FileAttachment, event.LLMRequestStarted, event.LLMAttemptEnded, event.ApprovalRequested,
			event.ApprovalDecided, event.ToolProgress:
			continue
		default:
			// The stories cover the text of other events.
			_, effects := transcript.Reduce(transcript.State{}, e)
			switch effect := effects[0].(type) {
			case transcript.AppendEntry:
				entry.Entry = effect.Entry
			case transcript.EmitWarning:
				entry.Entry = warning(effect.Message, e)
			}
		}
		entry.Timestamp = e.Timestamp
		shown = append(shown, entry)
	}
	slices.SortStableFunc(shown, func(a, b positionedEntry) int { return cmp.Compare(a.after, b.after) })
	document := transcript.Document{Entries: []transcript.Item{}}
	for _, entry := range shown {
		document.Entries = append(document.Entries, transcript.Item{Type: "NORMALIZED_ENTRY", Content: entry.Entry})
	}
	return document
}

type positionedEntry struct {
	transcript.Entry
	after int
}

func ofType(kind transcript.Kind, content string) transcript.Entry {
	return transcript.Entry{EntryType: transcript.EntryType{Type: kind}, Content: content}
}

func warning(message string, e event.Event) transcript.Entry {
	entry := ofType(transcript.SystemMessage, message)
	entry.EntryType.Subtype, entry.EntryType.Level, entry.Metadata = transcript.SubtypeTranscript, transcript.Warning, metadata(e)
	return entry
}

// metadata returns the metadata of a short event.
func metadata(e event.Event) json.RawMessage {
	fields := maps.Clone(e.Extra)
	if call, ok := e.Body.(event.ToolCall); ok && call.MessageID != "" && call.RequestID == "" {
		if fields == nil {
			fields = map[string]json.RawMessage{}
		}
		fields["messageId"], _ = json.Marshal(call.MessageID)
	}
	if len(fields) == 0 {
		return nil
	}
	data, _ := json.Marshal(fields)
	return data
}

// oracle scans all events, without repeats, for every question.
type oracle struct{ events []event.Event }

// newest returns the counter of the newest event before event i.
func (o oracle) newest(i int) int {
	n := 0
	for _, e := range o.events[:i] {
		n = max(n, event.Counter(e.ID))
	}
	return n
}

// afterThrough returns the counter of throughEventID, or of the newest event if the
// log does not contain it yet.
func (o oracle) afterThrough(i int, throughEventID string) int {
	through, newest := event.Counter(throughEventID), o.newest(i+1)
	if through == 0 || through > newest {
		return newest
	}
	return through
}

// position returns the counter of the event that the entry of event i follows.
func (o oracle) position(i int) int {
	switch body := o.events[i].Body.(type) {
	case event.TextDelta:
		return o.afterThrough(i, body.ThroughEventID)
	case event.ReasoningDelta:
		return o.afterThrough(i, body.ThroughEventID)
	case event.AssistantMessage:
		return o.afterThrough(i, body.ThroughEventID)
	case event.LLMRequestCompleted:
		return o.requestPosition(i, body.RequestID)
	case event.LLMRequestInterrupted:
		return o.requestPosition(i, body.RequestID)
	case event.LLMRequestFailed:
		return o.requestPosition(i, body.RequestID)
	case event.LLMRequestFellBack:
		return o.requestPosition(i, body.RequestID)
	case event.HookApplied:
		return o.requestPosition(i, body.RequestID)
	case event.ToolCall:
		for j := i - 1; j >= 0; j-- {
			answer, isAnswer := o.events[j].Body.(event.AssistantMessage)
			if isAnswer && (body.MessageID == "" || body.MessageID == o.events[j].ID) && o.isLogged(j, answer.ThroughEventID) {
				return o.position(j)
			}
			if isAnswer || o.events[j].Tag() == event.TagUserMessage {
				break
			}
		}
	}
	return o.newest(i + 1)
}

// requestPosition returns the position of the newest attempt or answer before event i
// if it belongs to the request, else of the newest event.
func (o oracle) requestPosition(i int, requestID string) int {
	for j := i - 1; j >= 0; j-- {
		id, through := "", ""
		switch body := o.events[j].Body.(type) {
		case event.LLMRequestStarted:
			id, through = body.RequestID, body.ThroughEventID
		case event.AssistantMessage:
			id, through = body.RequestID, body.ThroughEventID
		}
		if id == "" {
			continue
		}
		if id == requestID && o.isLogged(j, through) {
			return o.afterThrough(j, through)
		}
		break
	}
	return o.newest(i + 1)
}

// isLogged reports whether throughEventID is an event before event i.
func (o oracle) isLogged(i int, throughEventID string) bool {
	through := event.Counter(throughEventID)
	return through > 0 && through <= o.newest(i+1)
}

// attachments returns the attachments of the message of event i.
func (o oracle) attachments(i int) []transcript.Attachment {
	var out []transcript.Attachment
	for j := i - 1; j >= 0 && o.events[j].Tag() != event.TagUserMessage; j-- {
		if body, ok := o.events[j].Body.(event.FileAttachment); ok {
			out = append(out, transcript.Attachment{
				Name: cmp.Or(body.FileName, body.Source.URL), MediaType: body.MediaType, URL: body.Source.URL, EventID: o.events[j].ID,
			})
		}
	}
	slices.Reverse(out)
	return out
}

// weatherIsClients reports whether the newest tools before event i declare the tool weather.
func (o oracle) weatherIsClients(i int) bool {
	for _, e := range slices.Backward(o.events[:i]) {
		if body, ok := e.Body.(event.SetTools); ok {
			return slices.ContainsFunc(body.Tools, func(tool event.Tool) bool { return tool.Name == "weather" })
		}
	}
	return false
}

func onLines(raw json.RawMessage) string {
	var text bytes.Buffer
	_ = json.Indent(&text, raw, "", "  ")
	return text.String()
}

// live adds the approval and the progress of a call until its first result.
func (o oracle) live(call int, resultAt map[int]int, entry *transcript.Entry) {
	body := o.events[call].Body.(event.ToolCall)
	running, arguments, next := entry.EntryType.Status, body.Parameters, 0
	for j := call + 1; j < len(o.events) && !(resultAt[call] > 0 && j >= resultAt[call]-1); j++ {
		approval := entry.EntryType.Approval
		switch change := o.events[j].Body.(type) {
		case event.ApprovalRequested:
			if o.isOldestOpen(call, j, change.ToolCallID, change.RequestID, resultAt) {
				entry.EntryType.Status = transcript.PendingApproval
				entry.EntryType.Approval = &transcript.Approval{Arguments: onLines(arguments), ExpiresAt: change.ExpiresAt}
			}
		case event.ApprovalDecided:
			if approval == nil || approval.Decision != "" || change.ToolCallID != "" && change.ToolCallID != body.ToolCallID {
				continue
			}
			*approval = transcript.Approval{
				ExpiresAt: approval.ExpiresAt, Decision: change.Decision, Reason: change.Reason, DecidedBy: change.DecidedBy, Edited: change.Parameters != nil,
			}
			if entry.EntryType.Status = running; change.Decision == event.Deny {
				entry.EntryType.Status = transcript.Denied
			}
			if approval.Edited {
				arguments = change.Parameters
				entry.EntryType.ActionType.Arguments = arguments
			}
		case event.ToolProgress:
			if o.isOldestOpen(call, j, change.ToolCallID, change.RequestID, resultAt) && change.Index >= next {
				entry.Progress, next = change.Text, change.Index+1
			}
		}
	}
}

// isOldestOpen reports whether a call is the oldest one with these ids and no result before event i.
func (o oracle) isOldestOpen(call, i int, toolCallID, requestID string, resultAt map[int]int) bool {
	for j, e := range o.events[:i] {
		at, isShown := resultAt[j]
		body, ok := e.Body.(event.ToolCall)
		if ok && isShown && (at == 0 || at-1 > i) && body.ToolCallID == toolCallID && body.RequestID == requestID {
			return j == call
		}
	}
	return false
}

// steps counts the answers with tool calls of the request that event i ends, and failed the other
// attempts with usage.
func (o oracle) steps(i int) (steps, failed int) {
	o.eachAttempt(i, func(ended event.LLMAttemptEnded) {
		if ended.Outcome == event.AttemptToolCalls {
			steps++
		} else {
			failed++
		}
	})
	return steps, failed
}

// duration formats as entries do.
func duration(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// withSteps returns the event with the sums of the request.
func (o oracle) withSteps(i int) event.Event {
	e := o.events[i]
	var total event.Usage
	var durationMs int64
	switch body := e.Body.(type) {
	case event.LLMRequestCompleted:
		total = body.Usage
	case event.LLMRequestInterrupted:
		total = body.Usage
	case event.LLMRequestFailed:
		total = body.Usage
	}
	isPriced := total.CostMicros != nil
	cost, attempts := int64(0), 0
	if isPriced {
		cost = *total.CostMicros
	}
	if e.Tag() != event.TagLLMRequestCompleted && total.InputTokens+total.OutputTokens == 0 {
		isPriced = true // it was not charged
	}
	o.eachAttempt(i, func(step event.LLMAttemptEnded) {
		attempts++
		total.InputTokens += step.InputTokens
		if step.Outcome == event.AttemptToolCalls {
			durationMs += step.DurationMs
		}
		if isPriced = isPriced && step.CostMicros != nil; isPriced {
			cost += *step.CostMicros
		}
	})
	if attempts > 0 {
		total.CostMicros = nil
		if isPriced {
			total.CostMicros = new(cost)
		}
	}
	switch body := e.Body.(type) {
	case event.LLMRequestCompleted:
		body.Usage, body.DurationMs = total, body.DurationMs+durationMs
		e.Body = body
	case event.LLMRequestInterrupted:
		body.Usage = total
		e.Body = body
	case event.LLMRequestFailed:
		body.Usage = total
		e.Body = body
	}
	return e
}

// eachAttempt visits the ends of the attempts with tool calls or usage since an event of another
// request.
func (o oracle) eachAttempt(i int, visit func(event.LLMAttemptEnded)) {
	requestID := event.RequestOf(o.events[i].Body)
	var steps []event.LLMAttemptEnded
	current := ""
	for _, e := range o.events[:i] {
		switch body := e.Body.(type) {
		case event.LLMRequestStarted:
			if body.RequestID != current {
				current, steps = body.RequestID, nil
			}
		case event.AssistantMessage:
			if body.RequestID != "" && body.RequestID != current {
				current, steps = body.RequestID, nil
			}
		case event.LLMAttemptEnded:
			if body.RequestID == current && (body.Outcome == event.AttemptToolCalls || body.InputTokens > 0) {
				steps = append(steps, body)
			}
		case event.LLMRequestFellBack:
			if body.RequestID == current && body.InputTokens > 0 {
				steps = append(steps, event.LLMAttemptEnded{Outcome: event.AttemptFailed, Usage: body.Usage})
			}
		}
	}
	if current == requestID {
		for _, step := range steps {
			visit(step)
		}
	}
}

// results returns, by the index of a call, its newest result (nil for none) and the number, from 1, of
// the event that gave it its first result (0 for none). It omits a call with the id of an open call of
// the same session.
func (o oracle) results() (results map[int]*event.Event, resultAt map[int]int) {
	results, resultAt = map[int]*event.Event{}, map[int]int{}
	var calls, waiting []int
	session := func(i int) (id string) {
		_ = json.Unmarshal(o.events[i].Extra["sessionId"], &id)
		return id
	}
	toolCallID := func(i int) string {
		if result, ok := o.events[i].Body.(event.ToolResult); ok {
			return result.ToolCallID
		}
		return o.events[i].Body.(event.ToolCall).ToolCallID
	}
	// match is 2 for a call of the same session, 1 if either session is unknown, else 0.
	match := func(result, call int) int {
		switch a, b := session(result), session(call); {
		case toolCallID(result) != toolCallID(call):
			return 0
		case a == b:
			return 2
		case a == "" || b == "":
			return 1
		}
		return 0
	}
	// resultOrder contains the calls with results, in the order of their first results.
	var resultOrder []int
	answer := func(call, result int) {
		if results[call] == nil {
			resultOrder = append(resultOrder, call)
			resultAt[call] = max(call, result) + 1
		}
		results[call] = &o.events[result]
	}
	for i, e := range o.events {
		switch e.Body.(type) {
		case event.ToolCall:
			isOpen := slices.ContainsFunc(calls, func(call int) bool {
				return results[call] == nil && match(i, call) == 2
			})
			if isOpen {
				continue
			}
			calls, results[i], resultAt[i] = append(calls, i), nil, 0
			waiting = slices.DeleteFunc(waiting, func(result int) bool {
				belongs := match(result, i) > 0
				if belongs {
					answer(i, result)
				}
				return belongs
			})
		case event.ToolResult:
			found := -1
			for _, want := range []int{2, 1} {
				for _, call := range slices.Backward(resultOrder) {
					if found < 0 && match(i, call) == want {
						found = call
					}
				}
				for _, call := range slices.Backward(calls) {
					if results[call] == nil && match(i, call) == want {
						found = call // the oldest open one comes first
					}
				}
				if found >= 0 {
					break
				}
			}
			if found < 0 {
				waiting = append(waiting, i)
			} else {
				answer(found, i)
			}
		}
	}
	return results, resultAt
}

// streams returns the streaming entries by the index of their first delta.
func (o oracle) streams() map[int]transcript.Entry {
	var stream, complete attemptID // the newest attempt, and the newest one with an answer
	var since, ended int
	var sent struct {
		request, attempt int
	}
	for i, e := range o.events {
		next := attemptID{}
		switch body := e.Body.(type) {
		case event.AssistantMessage:
			request := event.RequestNumber(body.RequestID)
			if request == 0 {
				continue
			}
			if sent.request != request {
				sent.request, sent.attempt = request, 0
			}
			done := attemptID{request, sent.attempt}
			if done.attempt == 0 && stream.request == request {
				done = stream
			}
			if complete.before(done) {
				complete = done
			}
		case event.LLMRequestCompleted, event.LLMRequestInterrupted, event.LLMRequestFailed:
			ended = max(ended, event.RequestNumber(event.RequestOf(body)))
		case event.LLMRequestFellBack:
			if request := event.RequestNumber(body.RequestID); request == stream.request {
				next = attemptID{request, stream.attempt + 1}
			}
		case event.LLMRequestStarted:
			next = attemptID{event.RequestNumber(body.RequestID), body.Attempt}
			sent.request, sent.attempt = next.request, next.attempt
		default:
			if d, _, ok := deltaOf(body); ok {
				next = attemptID{event.RequestNumber(d.RequestID), d.Attempt}
			}
		}
		if stream.before(next) && complete.before(next) && next.request > ended {
			stream, since = next, i
		}
	}
	if stream.request <= ended || !complete.before(stream) {
		return nil
	}
	next := 0
	first, text := map[transcript.Kind]int{}, map[transcript.Kind]string{}
	for i, e := range o.events[since:] {
		d, kind, ok := deltaOf(e.Body)
		if !ok || (attemptID{event.RequestNumber(d.RequestID), d.Attempt}) != stream {
			continue
		}
		switch {
		case d.Reset && d.Index >= next-1:
			clear(text)
		case d.Index != next:
			continue
		}
		if text[kind] == "" {
			first[kind] = since + i
		}
		text[kind] += d.Delta
		next = d.Index + 1
	}
	entries := map[int]transcript.Entry{}
	for kind, chunk := range text {
		if chunk != "" {
			entry := ofType(kind, "")
			entry.Chunks = []string{chunk}
			entries[first[kind]] = entry
		}
	}
	return entries
}

type attemptID struct{ request, attempt int }

func (a attemptID) before(b attemptID) bool {
	return a.request < b.request || a.request == b.request && a.attempt < b.attempt
}

func since(t require.TestingT, p *transcript.Patcher, version int) []transcript.Operation {
	patch, ok := p.Since(version)
	require.True(t, ok)
	return patch
}

// apply applies a patch with an independent library.
func apply(t require.TestingT, document string, patch []transcript.Operation) string {
	decoded, err := jsonpatch.DecodePatch([]byte(marshal(t, patch)))
	require.NoError(t, err)
	out, err := decoded.Apply([]byte(document))
	require.NoError(t, err, "%s on %s", marshal(t, patch), document)
	return string(out)
}

// joined merges the chunks of each entry, whose boundaries are arbitrary.
func joined(t require.TestingT, document string) string {
	var d transcript.Document
	require.NoError(t, json.Unmarshal([]byte(document), &d))
	for i, item := range d.Entries {
		if item.Content.Chunks != nil {
			d.Entries[i].Content.Chunks = []string{strings.Join(item.Content.Chunks, "")}
		}
	}
	return marshal(t, d)
}

func marshal(t require.TestingT, value any) string {
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}
