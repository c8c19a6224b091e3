package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// State is the immutable state between events. Its zero value precedes the first event.
type State struct {
	newest      int    // counter of the newest event
	cwd         string // the agent's working directory; "" if unknown
	attachments []Attachment
	request     request  // the newest
	answer      position // newest since the last user message
	running     event.Running
	stream      stream
	open        []*pendingCall // without a result, oldest first
	answered    *answered
	waiting     []pendingResult
	clientTools []event.Tool
}

type request struct {
	position
	model string
	// steps counts answers with tool calls; failed counts other ended attempts with usage. usage is
	// the sum over both, and durationMs the sum over the steps.
	steps, failed int
	summaries     int // ended attempts that wrote a summary and used tokens; usage includes theirs
	usage         event.Usage
	durationMs    int64
}

// position is where the entries of a request or an answer belong.
type position struct {
	id    string // of the request or the answer
	after string // id of the event whose entries precede them; "" for log order
}

// stream is the text of the running attempt.
type stream struct {
	next           int    // expected index of the next delta
	text, thinking string // entry ids; "" if none is shown
}

// Reduce returns the effects of an event, none for a repeat. Recorded events must be in log order.
func Reduce(s State, e event.Event) (State, []Effect) {
	counter := event.Counter(e.ID)
	if counter > 0 && counter <= s.newest {
		return s, nil
	}
	f := fold{State: s, event: e, at: timeOf(e)}
	f.newest, f.running = max(f.newest, counter), f.running.After(e)
	if !f.running.IsSameAttempt(s.running) {
		f.removeStreamed()
		f.stream.next = 0
	}
	f.apply()
	return f.State, f.effects
}

type fold struct {
	State
	event   event.Event
	at      time.Time
	effects []Effect
}

func (f *fold) apply() {
	switch body := f.event.Body.(type) {
	case event.SystemPrompt:
		f.appendSystem("", SubtypePrompt, Info, cmp.Or(body.Content, "System prompt removed"))
	case event.UserMessage:
		f.append("", Entry{EventID: f.event.ID, EntryType: EntryType{Type: UserMessage}, Content: body.Content, Attachments: f.attachments})
		f.attachments, f.answer = nil, position{}
	case event.AssistantMessage:
		f.appendAnswer(body)
	case event.FileAttachment:
		f.attachments = append(slices.Clip(f.attachments), attachment(f.event.ID, body))
	case event.ToolCall:
		f.addCall(body)
	case event.ToolResult:
		f.addResult(body)
	case event.ToolProgress:
		f.addProgress(body)
	case event.ApprovalRequested:
		f.requestApproval(body)
	case event.ApprovalDecided:
		f.decide(body)
	case event.SetTools:
		f.clientTools = clientTools(body)
		level := Info
		if slices.ContainsFunc(body.Approve, body.IsIdle) {
			level = Warning
		}
		f.appendSystem("", SubtypeSettings, level, settings(body))
	case event.Note:
		f.appendNote(body)
	case event.TextDelta:
		f.addDelta(body, AssistantMessage)
	case event.ReasoningDelta:
		f.addDelta(event.TextDelta(body), Thinking)
	case event.LLMRequestStarted:
		if f.request.id != body.RequestID {
			f.request = request{}
		}
		f.request.position = position{body.RequestID, f.logged(body.ThroughEventID)}
		f.request.model = body.Model
	case event.LLMAttemptEnded:
		switch body.Outcome {
		case event.AttemptToolCalls:
			f.endStep(body)
		case event.AttemptCompacted:
			f.endSummary(body)
		default:
			f.endFailed(body.RequestID, body.Usage)
		}
	case event.LLMRequestCompleted:
		f.append(f.positionOf(body.RequestID), f.usage(body))
	case event.LLMRequestInterrupted:
		f.appendSystem(f.positionOf(body.RequestID), SubtypeInterrupted, Info, interruption(body.Reason))
		f.appendUsage(body.RequestID, body.Usage)
	case event.LLMRequestFailed:
		f.append(f.positionOf(body.RequestID), Entry{
			EntryType: EntryType{Type: ErrorMessage, Subtype: SubtypeRequestFailed, FailureKind: body.Kind, Retryable: body.Retryable},
			Content:   "No answer" + afterRetries(body.RetriesAttempted) + ": " + body.Error,
		})
		f.appendUsage(body.RequestID, body.Usage)
	case event.LLMRequestFellBack:
		f.endFailed(body.RequestID, body.Usage)
		f.appendSystem(f.positionOf(body.RequestID), SubtypeFellBack, Warning, fmt.Sprintf("Fell back to %s from %s%s: %s",
			body.ToProvider, body.FromProvider, afterRetries(body.RetriesAttempted), body.Error))
	case event.HookApplied:
		f.appendHook(body)
	case event.Compacted:
		content := "Compacted: " + body.String()
		if body.Summary != "" {
			content += "\n" + body.Summary
		}
		f.appendSystem("", SubtypeCompacted, Info, content)
	case event.ContentRefused:
		f.appendSystem(f.positionOf(body.RequestID), SubtypeContentRefused, Warning, body.String())
	case event.InputRejected:
		f.appendSystem("", SubtypeRejected, Warning, strings.TrimRight("Input rejected: "+body.Reason+"\n"+body.Input, "\n"))
	case event.SessionStarted:
		content := "The session started"
		if body.ForkedFrom != "" {
			content += " as a fork of " + body.ForkedFrom
		}
		f.appendSystem("", SubtypeSessionStarted, Info, content)
	case event.SessionEnded:
		f.appendSystem("", SubtypeSessionEnded, Info, "The session ended: "+body.Reason)
	case event.Setting:
		f.appendSystem("", SubtypeSettings, Info, settings(body))
	}
}

func (f *fold) appendHook(body event.HookApplied) {
	level, content := Warning, "Hook "+body.Hook+" "+body.String()
	if body.Outcome == event.HookChanged {
		level = Info
	}
	if c := body.Change; c != nil {
		if c.Instructions != "" {
			content += "\nAdded instructions: " + c.Instructions
		}
		for _, m := range c.Messages {
			content += "\nReplaced the content of " + m.EventID + ": " + m.Content
		}
	}
	f.appendSystem(f.positionOf(body.RequestID), SubtypeHook, level, content)
}

func (f *fold) appendAnswer(body event.AssistantMessage) {
	after := f.logged(body.ThroughEventID)
	f.answer = position{f.event.ID, after}
	if body.Reasoning != "" {
		f.append(after, Entry{
			EntryType: EntryType{Type: Thinking}, Content: body.Reasoning, Partial: body.Partial && body.Content == "",
		})
	}
	if body.Content != "" {
		f.append(after, Entry{EventID: f.event.ID, EntryType: EntryType{Type: AssistantMessage}, Content: body.Content, Partial: body.Partial})
	}
}

// addDelta ignores deltas of other attempts, and those after a gap until a Reset.
func (f *fold) addDelta(body event.TextDelta, kind Kind) {
	if f.running.Compare(body.RequestID, body.Attempt) != 0 {
		return
	}
	// A Reset contains all text so far, including that of missing deltas.
	reset := body.Reset && body.Index >= f.stream.next-1
	if !reset && body.Index != f.stream.next {
		return
	}
	if reset {
		f.removeStreamed()
	}
	f.stream.next = body.Index + 1
	id := &f.stream.text
	if kind == Thinking {
		id = &f.stream.thinking
	}
	switch {
	case body.Delta == "":
	case *id != "":
		f.effects = append(f.effects, AppendText{ID: *id, Text: body.Delta})
	default:
		*id = fmt.Sprintf("%s/%d/%s", body.RequestID, body.Attempt, kind)
		f.effects = append(f.effects, AppendEntry{
			ID: *id, After: f.logged(body.ThroughEventID),
			Entry: Entry{EntryType: EntryType{Type: kind}, Chunks: []string{body.Delta}},
		})
	}
}

func (f *fold) removeStreamed() {
	for _, id := range []*string{&f.stream.thinking, &f.stream.text} {
		if *id != "" {
			f.effects = append(f.effects, RemoveEntry{ID: *id})
			*id = ""
		}
	}
}

func (f *fold) endStep(body event.LLMAttemptEnded) {
	if f.request.id == body.RequestID {
		f.request.usage = f.request.total(body.Usage)
		f.request.steps++
		f.request.durationMs += body.DurationMs
	}
}

func (f *fold) endSummary(body event.LLMAttemptEnded) {
	if f.request.id == body.RequestID && isUsed(body.Usage) {
		f.request.usage = f.request.total(body.Usage)
		f.request.summaries++
	}
}

func (f *fold) endFailed(requestID string, usage event.Usage) {
	if f.request.id == requestID && isUsed(usage) {
		f.request.usage = f.request.total(usage)
		f.request.failed++
	}
}

// isUsed is false for an attempt that the provider rejected, unless it has quirks.
func isUsed(usage event.Usage) bool {
	return usage.InputTokens+usage.OutputTokens > 0 || len(usage.Quirks) > 0
}

func (r request) total(usage event.Usage) event.Usage {
	if r.steps+r.failed+r.summaries == 0 {
		return usage
	}
	return sum(r.usage, usage)
}

// sum has no cost if either cost is unknown.
func sum(a, b event.Usage) event.Usage {
	total := event.Usage{
		InputTokens: a.InputTokens + b.InputTokens, CachedTokens: a.CachedTokens + b.CachedTokens,
		OutputTokens: a.OutputTokens + b.OutputTokens, ReasoningTokens: a.ReasoningTokens + b.ReasoningTokens,
		Estimated: a.Estimated || b.Estimated, Quirks: event.DistinctQuirks(a.Quirks, b.Quirks),
	}
	if a.CostMicros != nil && b.CostMicros != nil {
		total.CostMicros = new(*a.CostMicros + *b.CostMicros)
	}
	return total
}

// appendNote uses the agent's extra fields, among them line, which marks malformed input.
func (f *fold) appendNote(body event.Note) {
	switch body.Kind {
	case event.NoteThinking:
		f.append("", Entry{EntryType: EntryType{Type: Thinking}, Content: body.Content})
	case event.NoteError:
		f.append("", Entry{EntryType: EntryType{Type: ErrorMessage, Subtype: SubtypeNote}, Content: body.Content})
	case event.NoteWarning:
		if _, isMalformed := f.event.Extra["line"]; isMalformed {
			f.warn(body.Content)
			return
		}
		f.appendSystem("", SubtypeNote, Warning, body.Content)
	case event.NoteSystem:
		f.cwd = cmp.Or(extra[string](f.event, "cwd"), f.cwd)
		f.appendSystem("", SubtypeNote, Info, body.Content)
	case event.NoteUsage:
		tokens := extra[struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		}](f.event, "usage")
		f.append("", Entry{
			EntryType: EntryType{
				Type: TokenUsageInfo, Model: extra[string](f.event, "model"),
				InputTokens: tokens.Input, OutputTokens: tokens.Output, DurationMs: extra[int64](f.event, "durationMs"),
			},
			Content: body.Content,
		})
	}
}

func (f *fold) usage(body event.LLMRequestCompleted) Entry {
	r, durationMs := f.requestOf(body.RequestID), body.DurationMs
	r.usage = r.total(body.Usage)
	if r.steps > 0 {
		r.steps, durationMs = r.steps+1, durationMs+r.durationMs
	}
	entry := r.entry()
	entry.EntryType.DurationMs = durationMs
	entry.Content += fmt.Sprintf(", %v", time.Duration(durationMs)*time.Millisecond)
	if body.FinishReason != "stop" && body.FinishReason != "" {
		entry.Content += ", ended by " + body.FinishReason
	}
	return entry
}

func (f *fold) appendUsage(requestID string, usage event.Usage) {
	r := f.requestOf(requestID)
	if isUsed(usage) {
		r.usage = r.total(usage)
		if r.steps > 0 {
			r.steps++
		}
	}
	if isUsed(r.usage) {
		f.append(f.positionOf(requestID), r.entry())
	}
}

func (f *fold) requestOf(id string) request {
	if f.request.id != id {
		return request{}
	}
	return f.request
}

func (r request) entry() Entry {
	t := EntryType{
		Type: TokenUsageInfo, Model: r.model, InputTokens: r.usage.InputTokens, CachedTokens: r.usage.CachedTokens,
		OutputTokens: r.usage.OutputTokens, ReasoningTokens: r.usage.ReasoningTokens, Estimated: r.usage.Estimated,
		CostMicros: r.usage.CostMicros, FailedAttempts: r.failed, Quirks: r.usage.Quirks,
	}
	content := event.DescribeUsage(r.usage)
	if r.steps > 1 {
		t.Steps = r.steps
		content += fmt.Sprintf(" in %d steps", r.steps)
	}
	var included []string
	for _, part := range []struct {
		n         int
		one, many string
	}{{r.summaries, "a summary", "summaries"}, {r.failed, "a failed attempt", "failed attempts"}} {
		switch {
		case part.n == 1:
			included = append(included, part.one)
		case part.n > 1:
			included = append(included, fmt.Sprintf("%d %s", part.n, part.many))
		}
	}
	if len(included) > 0 {
		content += ", including " + strings.Join(included, " and ")
	}
	return Entry{EntryType: t, Content: content}
}

func (f *fold) append(after string, entry Entry) {
	f.effects = append(f.effects, AppendEntry{ID: f.event.ID, After: after, Entry: f.entry(entry)})
}

func (f *fold) entry(entry Entry) Entry {
	entry.Timestamp, entry.Metadata = f.at, metadataOf(f.event)
	return entry
}

func (f *fold) warn(message string) {
	f.effects = append(f.effects, EmitWarning{Message: message, Metadata: metadataOf(f.event)})
}

func (f *fold) appendSystem(after string, subtype Subtype, level Level, content string) {
	f.append(after, Entry{EntryType: EntryType{Type: SystemMessage, Subtype: subtype, Level: level}, Content: content})
}

// logged returns "" for an event that the log does not contain yet.
func (f *fold) logged(throughEventID string) string {
	if event.Counter(throughEventID) > f.newest {
		return ""
	}
	return throughEventID
}

func (f *fold) positionOf(requestID string) string {
	if f.request.id == requestID {
		return f.request.after
	}
	return ""
}

func attachment(eventID string, body event.FileAttachment) Attachment {
	a := Attachment{
		Name: cmp.Or(body.FileName, body.Source.String()), MediaType: body.MediaType, Size: body.Size, EventID: eventID,
	}
	if body.Source.Type == event.SourceURL && !strings.HasPrefix(body.Source.URL, "data:") {
		a.URL = body.Source.URL
	}
	return a
}

// timeOf prefers the time in the agent's log.
func timeOf(e event.Event) time.Time {
	// In UTC the year can be outside the range of JSON times.
	if at := extra[time.Time](e, "sourceTimestamp").UTC(); !at.IsZero() && at.Year() >= 0 && at.Year() <= 9999 {
		return at
	}
	return e.Timestamp.UTC()
}

// extra returns zero for a field that is missing or of another type.
func extra[T any](e event.Event, name string) T {
	var value, none T
	if json.Unmarshal(e.Extra[name], &value) != nil {
		return none
	}
	return value
}
