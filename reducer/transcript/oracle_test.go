package transcript_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

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
			entry.EventID, entry.Attachments = e.ID, o.attachments(i)
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
			entry.EventID, entry.Partial = e.ID, body.Partial
		case event.ToolCall:
			entry.Metadata = metadata(e)
			result, isCall := results[i]
			if !isCall {
				entry.Entry = warning(fmt.Sprintf("Ignored a call of the tool %s: another call with the id %q has no result yet", body.ToolName, body.ToolCallID), e)
				entry.after = o.newest(i + 1)
				break
			}
			action := &transcript.ActionType{Action: transcript.Tool, Arguments: body.Parameters}
			entry.Entry = ofType(transcript.ToolUse, body.ToolName)
			entry.EntryType.ToolName, entry.EntryType.ActionType, entry.EntryType.Status = body.ToolName, action, transcript.Created
			entry.Metadata = metadata(e)
			if body.RequestID != "" {
				entry.EntryType.ToolCallID = body.ToolCallID
				if _, isClients := o.clientsWeather(i); body.ToolName == "weather" && isClients {
					entry.EntryType.Status = transcript.PendingClient
				}
			}
			o.live(i, resultAt, &entry.Entry)
			approval := entry.EntryType.Approval
			if result != nil {
				outcome := result.Body.(event.ToolResult)
				entry.EntryType.Status, action.Result = transcript.Success, outcome.Value
				entry.ResultTimestamp = result.Timestamp
				_, isClients := o.clientsWeather(i)
				isTimed := body.RequestID == "" || body.ToolName == "weather" && isClients
				if entry.EntryType.DurationMs = outcome.DurationMs; outcome.DurationMs == 0 && isTimed {
					entry.EntryType.DurationMs = max(0, result.Timestamp.Sub(e.Timestamp).Milliseconds())
				}
				entry.Progress, entry.EntryType.Question = "", nil
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
			steps, summaries, failed := o.steps(i)
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
			including := ", including "
			switch summaries {
			case 0:
			case 1:
				figures, including = figures+", including a summary", " and "
			default:
				figures, including = figures+fmt.Sprintf(", including %d summaries", summaries), " and "
			}
			switch entry.EntryType.FailedAttempts = failed; failed {
			case 0:
			case 1:
				figures += including + "a failed attempt"
			default:
				figures += including + fmt.Sprintf("%d failed attempts", failed)
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
	case event.LLMRequestCompleted, event.LLMRequestInterrupted, event.LLMRequestFailed, event.LLMRequestFellBack, event.HookApplied:
		return o.requestPosition(i, event.RequestOf(body))
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

// requestPosition returns the position of the newest attempt before event i if it belongs to the request, else of
// the newest event.
func (o oracle) requestPosition(i int, requestID string) int {
	for j, e := range slices.Backward(o.events[:i]) {
		if started, ok := e.Body.(event.LLMRequestStarted); ok {
			if started.RequestID == requestID && o.isLogged(j, started.ThroughEventID) {
				return event.Counter(started.ThroughEventID)
			}
			break
		}
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

// clientsWeather returns the tool weather that the newest tools before event i declare.
func (o oracle) clientsWeather(i int) (tool event.Tool, ok bool) {
	for _, e := range slices.Backward(o.events[:i]) {
		if body, ok := e.Body.(event.SetTools); ok {
			for _, tool := range body.Tools {
				if tool.Name == "weather" {
					return tool, true
				}
			}
			break
		}
	}
	return event.Tool{}, false
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
	if entry.EntryType.Status == transcript.PendingClient {
		tool, _ := o.clientsWeather(call)
		entry.EntryType.Question = &transcript.Question{
			Arguments: onLines(arguments), Description: tool.Description, Schema: json.RawMessage(tool.Parameters),
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
