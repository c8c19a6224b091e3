package reducer_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// TestStories runs the scripts in testdata/session. Each file has a comment, the inputs in
// "script", and in "want" each input with its effects. The inputs are
//
//	open [OPTION]…              start the session; idle=1h: the time after which it closes,
//	                            default=PROVIDER/MODEL: those of the worker
//	say TEXT                    a user message
//	event JSON                  any input, as in a signal
//	completed [OPTION]… TEXT    the end of the attempt; also interrupted, withdrawn, failed,
//	                            handed_back and lost
//	called [OPTION]… JSON       an answer with tool calls, an array of CalledTool
//	too_long [OPTION]…          the end of an attempt that was not sent, because it is too long
//	tool ID [error] JSON        the result of a tool call; also tool ID lost
//	approve, deny [ID] [TEXT]   a decision; the text is a reason or, if it is JSON, the arguments
//	sleep DURATION              the time passes and the timer fires if it is due
//	continue [ID]…              the next run; the calls with the ids were not started, nor was the attempt
//	                            if one of the ids is "attempt"
//	interrupt, close [REASON]
//	terminate                   load the session from its log
//	afford TOKENS               print whether the budget allows an attempt
//	show                        print the conversation and the state of the session
//
// Inputs are one second apart; +4ms before a command means that it follows after 4 ms. The options are request=r0001 and attempt=1 (by
// default those of the session), provider=ollama (that of the worker), reason=timeout, kind=timeout, retryable=true, final=true, after=7s (the
// delay that the provider asks for), repair=PROBLEM, exceeded=TOKENS (wanted by the attempt), tokens=12/3 or ~12/3 (estimated usage),
// says=WORD (the text of called), reasoning=WORD (with a provider state), and
// hook=NAME/STAGE/OUTCOME. suspects=CONTENT,CONTENT:TOOL is what the provider may have refused. over=TOKENS/WINDOW or over=TOKENS/WINDOW/learned says by how much the request is too long. x(100) stands for a hundred x.
func TestStories(t *testing.T) { golden.Stories(t, "testdata/session/*.txtar", tell) }

type story struct {
	*testing.T
	session reducer.Session
	log     []event.Event
	now     time.Time
	timer   time.Time
	says    string // text of an answer with tool calls
	out     strings.Builder
}

var (
	filler      = regexp.MustCompile(`x{20,}`)
	placeholder = regexp.MustCompile(`x\((\d+)\)`)
)

func tell(t *testing.T, script string) string {
	s := &story{T: t, session: reducer.NewSession("demo"), now: eventtest.Epoch}
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&s.out, "> %s\n", line)
		pause := time.Second
		if after, ok := strings.CutPrefix(line, "+"); ok {
			text, rest, _ := strings.Cut(after, " ")
			line, pause = rest, s.duration(text)
		}
		s.now = s.now.Add(pause)
		command, rest, _ := strings.Cut(line, " ")
		rest = placeholder.ReplaceAllStringFunc(rest, func(text string) string {
			return strings.Repeat("x", s.number(placeholder.FindStringSubmatch(text)[1]))
		})
		switch command {
		case "show":
			s.show()
		case "sleep":
			s.sleep(rest)
		case "afford":
			s.afford(rest)
		case "terminate":
			s.timer = time.Time{}
			s.session = reducer.Load("demo", reducer.Reduce, s.log...)
		default:
			s.step(s.input(command, rest))
		}
	}
	return filler.ReplaceAllStringFunc(s.out.String(), func(x string) string { return fmt.Sprintf("x(%d)", len(x)) })
}

func (s *story) input(command, rest string) reducer.Input {
	switch command {
	case "open":
		return reducer.Opened{At: s.now, Options: s.runOptions(rest)}
	case "say":
		return reducer.Received{At: s.now, Events: []event.Event{event.New(event.UserMessage{Content: rest})}}
	case "event":
		events, err := event.DecodeInput([]byte(rest))
		if err != nil {
			return reducer.Malformed{At: s.now, Reason: err.Error(), Input: event.Redact(rest, event.MaxRejectedInput)}
		}
		return reducer.Received{At: s.now, Events: events}
	case "interrupt":
		return reducer.InterruptAsked{At: s.now}
	case "tool":
		return s.toolEnded(rest)
	case "approve", "deny":
		return s.decision(event.Decision(command), rest)
	case "continue":
		notStarted := strings.Fields(rest)
		isScheduled := !slices.Contains(notStarted, "attempt")
		return reducer.Continued{At: s.now, Scheduled: isScheduled, NotStarted: notStarted, Options: s.session.Options}
	case "close":
		return reducer.CloseAsked{At: s.now, Reason: rest}
	}
	in := s.options(rest)
	in.At, in.Outcome, in.DurationMs = s.now, reducer.Outcome(command), 1000
	if in.Reasoning != "" {
		in.ProviderState = &event.ProviderState{ProviderID: "p", Model: "m", BaseURL: "https://p.example/v1", Data: []byte(`{"a":1}`)}
	}
	switch in.Outcome {
	case reducer.Completed:
		in.FinishReason = "stop"
	case reducer.Called:
		require.NoError(s, json.Unmarshal([]byte(in.Text), &in.Calls))
		in.Text, in.FinishReason = s.says, "tool_calls"
	case reducer.Interrupted, reducer.Withdrawn:
	case reducer.Failed, reducer.HandedBack, reducer.Lost, reducer.TooLong:
		in.Error, in.Text = in.Text, ""
	default:
		require.Fail(s, "unknown command", command)
	}
	return in
}

// runOptions parses those of open.
func (s *story) runOptions(text string) (options reducer.Options) {
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "idle":
			options.IdleCloseMs = s.duration(value).Milliseconds()
		case "default":
			options.DefaultProviderID, options.DefaultModel, _ = strings.Cut(value, "/")
		default:
			require.Fail(s, "unknown option", word)
		}
	}
	return options
}

// options returns the attempt, its end and the text of a report.
func (s *story) options(rest string) (in reducer.AttemptEnded) {
	s.says = ""
	if r := s.session.Request; r != nil {
		in.RequestID, in.Attempt = r.ID, r.Attempt
		in.ProviderID, in.Model = r.ProviderID, r.Model
	}
	for {
		word, after, _ := strings.Cut(rest, " ")
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			in.Text = rest
			return in
		}
		rest = after
		switch name {
		case "request":
			in.RequestID = "demo:" + value
		case "attempt":
			in.Attempt = s.number(value)
		case "provider":
			in.ProviderID = value
		case "reason":
			in.Reason = event.Reason(value)
		case "kind":
			in.Kind = event.FailureKind(value)
		case "retryable":
			in.Retryable = value == "true"
		case "final":
			in.Final = value == "true"
		case "after":
			in.RetryAfterMs = s.duration(value).Milliseconds()
		case "repair":
			in.Repair = &reducer.Repair{Answer: "{", Problem: value}
		case "exceeded":
			in.Exceeded, in.Kind = s.exceeded(value), event.FailureBudgetExceeded
		case "suspects":
			for suspect := range strings.SplitSeq(value, ",") {
				content, tool, _ := strings.Cut(suspect, ":")
				in.Suspects = append(in.Suspects, reducer.Suspect{Content: event.Content(content), Tool: tool})
			}
		case "over":
			in.Overflow = s.overflow(value)
		case "tokens":
			in.Usage = s.tokens(value)
		case "hook":
			in.Hooks = append(in.Hooks, s.hook(value))
		case "offered":
			in.Offered = s.offered(value)
		case "reasoning":
			in.Reasoning = value
		case "says":
			s.says = value
		default:
			require.Fail(s, "unknown option", word)
		}
	}
}

// offered parses a report of tools that match a pattern, like files_*=files_read,files_write.
func (s *story) offered(text string) *event.ToolsOffered {
	pattern, names, _ := strings.Cut(text, "=")
	offered := &event.ToolsOffered{RequestID: "any", Attempt: 1, Patterns: []string{pattern}}
	for name := range strings.SplitSeq(names, ",") {
		if name != "" {
			offered.Tools = append(offered.Tools, event.OfferedTool{Name: name})
		}
	}
	return offered
}

// hook parses a report like pii/before/changed, of a hook that replaces the message demo:0002.
func (s *story) hook(text string) event.HookApplied {
	parts := strings.Split(text, "/")
	require.Len(s, parts, 3, text)
	h := event.HookApplied{Hook: parts[0], Stage: event.HookStage(parts[1]), Outcome: event.HookOutcome(parts[2])}
	if h.Stage == event.HookBefore && h.Outcome == event.HookChanged {
		h.Change = &event.HookChange{Messages: []event.ReplacedMessage{{EventID: "demo:0002", Content: "[name]"}}}
	}
	return h
}

func (s *story) toolEnded(rest string) reducer.ToolEnded {
	id, value, _ := strings.Cut(rest, " ")
	request, id, ok := strings.Cut(id, "/")
	if !ok {
		request, id = "", request
	}
	in := reducer.ToolEnded{At: s.now, RequestID: "demo:" + request, CallID: id, Outcome: reducer.CallReturned, Duration: time.Second}
	if r := s.session.Request; !ok && r != nil {
		in.RequestID = r.ID
	}
	if text, isError := strings.CutPrefix(value, "error "); isError {
		in.Error, in.IsError = json.RawMessage(text), true
	} else if value == "lost" || value == "cancelled" {
		in.Outcome = reducer.CallOutcome(value)
	} else {
		in.Value = json.RawMessage(value)
	}
	return in
}

func (s *story) decision(decision event.Decision, rest string) reducer.Received {
	body := event.ApprovalDecided{Decision: decision, DecidedBy: "ann"}
	body.ToolCallID, rest, _ = strings.Cut(rest, " ")
	if strings.HasPrefix(rest, "{") {
		body.Parameters = json.RawMessage(rest)
	} else {
		body.Reason = rest
	}
	return reducer.Received{At: s.now, Events: []event.Event{event.New(body)}}
}

// sleep fires the timer if it is due.
func (s *story) sleep(text string) {
	s.now = s.now.Add(s.duration(text))
	if s.timer.IsZero() || s.now.Before(s.timer) {
		s.out.WriteString("  nothing\n")
		return
	}
	s.timer = time.Time{}
	s.step(reducer.Woken{At: s.now})
}

// overflow parses a request like 900/800/learned, of 900 tokens with a learned window of 800.
func (s *story) overflow(text string) *reducer.Overflow {
	parts := strings.Split(text+"/configured", "/")
	return &reducer.Overflow{Tokens: s.number(parts[0]), Window: s.number(parts[1]), Source: event.WindowSource(parts[2])}
}

// tokens parses a usage like 12/3, or ~12/3 if it is estimated.
func (s *story) tokens(text string) (u event.Usage) {
	text, u.Estimated = strings.CutPrefix(text, "~")
	input, output, _ := strings.Cut(text, "/")
	u.InputTokens, u.OutputTokens = s.number(input), s.number(output)
	return u
}

func (s *story) exceeded(tokens string) *event.BudgetExceeded {
	return reducer.Afford(s.session, event.Amount{Tokens: int64(s.number(tokens))})
}

func (s *story) afford(tokens string) {
	if exceeded := s.exceeded(tokens); exceeded != nil {
		fmt.Fprintf(&s.out, "  no: %s\n", exceeded)
		return
	}
	s.out.WriteString("  yes\n")
}

func (s *story) duration(text string) time.Duration {
	duration, err := time.ParseDuration(text)
	require.NoError(s, err)
	return duration
}

func (s *story) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s, err)
	return n
}

func (s *story) step(in reducer.Input) {
	var effects []reducer.Effect
	s.session, effects = reducer.Step(s.session, in)
	for _, effect := range effects {
		switch effect := effect.(type) {
		case reducer.Record:
			for _, e := range effect.Events {
				s.log = append(s.log, e)
				body, err := event.New(e.Body).MarshalJSON()
				require.NoError(s, err)
				fields := strings.TrimPrefix(string(body), fmt.Sprintf(`{"_tag":%q`, e.Tag()))
				fmt.Fprintf(&s.out, "  record %s %s {%s\n", e.ID, e.Tag(), strings.TrimPrefix(fields, ","))
			}
		case reducer.StartAttempt:
			s.start(effect)
		case reducer.StopAttempt:
			fmt.Fprintf(&s.out, "  stop %s attempt=%d %s", effect.RequestID, effect.Attempt, effect.Reason)
			if effect.Unsent {
				s.out.WriteString(" if it is unsent")
			}
			s.out.WriteString("\n")
		case reducer.CallTool:
			fmt.Fprintf(&s.out, "  call %s %s %s %s\n", effect.RequestID, effect.Call.ID, effect.Call.Name, effect.Call.Arguments)
		case reducer.CancelTools:
			fmt.Fprintf(&s.out, "  cancel the tools of %s\n", effect.RequestID)
		case reducer.WakeAt:
			s.timer = effect.At
			fmt.Fprintf(&s.out, "  wake at %s\n", effect.At.Format(time.RFC3339Nano))
		default:
			require.Fail(s, "unknown effect", "%T", effect)
		}
	}
	if len(effects) == 0 {
		s.out.WriteString("  nothing\n")
	}
}

func (s *story) start(effect reducer.StartAttempt) {
	fmt.Fprintf(&s.out, "  start %s attempt=%d turn=%d through=%s model=%q messages=%d",
		effect.RequestID, effect.Attempt, effect.Turn, effect.Through, effect.Model, effect.Messages)
	if !effect.SendAt.IsZero() {
		fmt.Fprintf(&s.out, " in=%v", effect.SendAt.Sub(s.now))
	}
	if effect.JitterMs > 0 {
		fmt.Fprintf(&s.out, " jitter=%dms", effect.JitterMs)
	}
	if effect.Fallback {
		s.out.WriteString(" fallback")
	}
	if effect.Steps > 0 {
		fmt.Fprintf(&s.out, " steps=%d", effect.Steps)
	}
	if effect.Limit != "" {
		fmt.Fprintf(&s.out, " limit=%s", effect.Limit)
	}
	if effect.Repair != nil {
		fmt.Fprintf(&s.out, " repair=%q", effect.Repair.Problem)
	}
	if c := effect.Compaction; c != nil {
		fmt.Fprintf(&s.out, " summary=%s of %d messages for %d tokens", c.Through, c.Messages, c.Window)
	} else if s.session.Request.Compactions > 0 {
		fmt.Fprintf(&s.out, " mayCompact=%t", effect.MayCompact)
	}
	s.out.WriteString("\n")
}

func (s *story) show() {
	for _, line := range brief(s.session.Reduced.Messages) {
		fmt.Fprintf(&s.out, "  %s\n", line)
	}
	if r := s.session.Request; r != nil {
		for _, c := range r.Calls {
			fmt.Fprintf(&s.out, "  - %s %s is %s\n", c.ID, c.Name, c.State)
		}
		if sent := reducer.MessagesOf(s.session); len(sent) < len(s.session.Reduced.Messages) {
			for _, line := range brief(sent) {
				fmt.Fprintf(&s.out, "  next attempt: %s\n", line)
			}
		}
	}
	state := "idle"
	switch r := s.session.Request; {
	case s.session.Ended:
		state = "ended"
	case r != nil:
		state = fmt.Sprintf("%s in %s", s.session.Phase(), r.ID)
	}
	if s.session.Trigger != "" {
		state += ", to answer " + s.session.Trigger
	}
	fmt.Fprintf(&s.out, "  = %s, %d requests, %d turns\n", state, s.session.Requests, s.session.Turns)
	if details, err := json.Marshal(s.session.Details); err != nil || string(details) != "{}" {
		require.NoError(s, err)
		fmt.Fprintf(&s.out, "  = details %s\n", details)
	}
	for _, w := range s.session.Windows {
		fmt.Fprintf(&s.out, "  = the window of %s %s has %d tokens\n", w.ProviderID, w.Model, w.Tokens)
	}
	for _, r := range s.session.Reduced.Refused {
		fmt.Fprintf(&s.out, "  = %s\n", r)
	}
	if u := s.session.Usage; u.InputTokens+u.OutputTokens > 0 {
		fmt.Fprintf(&s.out, "  = %d attempts, %d tokens in, %d out, estimated %t\n", u.Attempts, u.InputTokens, u.OutputTokens, u.Estimated)
	}
}

func TestPersistedNamesNeverChange(t *testing.T) {
	request := reducer.Request{
		ID: "demo:r0001", Through: "demo:0002", Attempt: 2, AttemptEnded: true, ProviderID: "p", Model: "m", Fallback: true,
		SendAt: eventtest.Epoch, Since: eventtest.Epoch, Taken: "demo:0003", Stop: event.ReasonCancelled, Dropped: "demo:0003",
		Retries: 1, RetryAt: eventtest.Epoch, JitterMs: 2, Messages: 3, Repair: &reducer.Repair{Answer: "{", Problem: "no JSON"},
		Returns: 4, Steps: 5, Limit: "demo:0001", Compactions: 6, Refusals: 7,
		Compaction: &reducer.Compaction{
			Through: "demo:0002", Messages: 1, ProviderID: "p", Model: "m",
			Overflow: reducer.Overflow{Tokens: 10, Window: 11, Source: event.WindowLearned},
		},
	}
	const persisted = `{"id":"demo:r0001","through":"demo:0002","attempt":2,"attemptEnded":true,"providerId":"p","model":"m","fallback":true,
		"sendAt":"2026-01-02T15:04:05Z","since":"2026-01-02T15:04:05Z","taken":"demo:0003","stop":"cancelled","dropped":"demo:0003",
		"retries":1,"retryAt":"2026-01-02T15:04:05Z","jitterMs":2,"messages":3,"repair":{"answer":"{","problem":"no JSON"},
		"returns":4,"steps":5,"limit":"demo:0001","compactions":6,"refusals":7,
		"compaction":{"throughEventId":"demo:0002","messages":1,"providerId":"p","model":"m","tokens":10,"window":11,"source":"learned"}}`
	data, err := json.Marshal(request)
	require.NoError(t, err)
	require.JSONEq(t, persisted, string(data))
	decoder := json.NewDecoder(strings.NewReader(persisted))
	decoder.DisallowUnknownFields()
	var restored reducer.Request
	require.NoError(t, decoder.Decode(&restored))
	require.Equal(t, request, restored)

	require.Equal(t, []reducer.Outcome{"completed", "called", "interrupted", "withdrawn", "failed", "handed_back", "lost", "too_long"}, []reducer.Outcome{
		reducer.Completed, reducer.Called, reducer.Interrupted, reducer.Withdrawn, reducer.Failed, reducer.HandedBack, reducer.Lost, reducer.TooLong,
	})
}
