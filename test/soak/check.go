package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

const (
	checkTimeout  = 2 * time.Minute
	answerTimeout = 3 * time.Minute // of a context after hostile input; generous, because the machine may be busy
)

// check checks the laws. What happens in the background must have happened before checkTimeout.
func (u *user) check(ctx context.Context) error {
	if u.kind.hostile {
		for _, name := range append([]string{u.name()}, u.forks...) {
			c, err := u.Contexts.Open(name)
			if err == nil {
				err = answerAgain(ctx, c)
			}
			if err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := retry(ctx, checkTimeout/4, u.checkOnce)
	if err == nil {
		u.count()
	}
	return err
}

func (u *user) checkOnce(ctx context.Context) error {
	state, err := u.context.State(ctx)
	if err != nil {
		return err
	}
	var log []event.Event
	for e, err := range u.context.Events(ctx, "") {
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		log = append(log, e)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var p problems
	u.journal.check(&p, log)
	checkRequests(&p, log)
	checkSecrets(&p, log)
	checkFold(&p, log, len(log)/2)
	checkState(&p, u.name(), log, state)
	if !bytes.Equal(encode(u.followed), encode(log)) {
		p.add("the follower received other events than the log has:\n%s", tail(u.followed))
	}
	if !u.kind.hostile {
		u.checkRuns(ctx, &p)
		u.journal.checkConversation(&p, log)
		checkAnswers(&p, log)
		checkCalls(&p, log, u.tools.executedIn(u.name()))
	}
	if shown, err := u.document(ctx); err != nil {
		p.add("read the transcript: %w", err)
	} else {
		checkTranscript(&p, log, shown)
	}
	verified, err := u.context.Verify(ctx)
	for _, found := range verified.Problems {
		if !strings.Contains(found.Text, unknownBlob) { // clients may refer to bytes that no store has
			p.add("verify: %s %s", found.Place, found.Text)
		}
	}
	return errors.Join(append(p, err)...)
}

// unknownBlob is a reference of eventtest.
const unknownBlob = "sha256/0123456789abcdef"

// count counts what happened in the context, whose follower has received the log.
func (u *user) count() {
	u.counts.add(checked, 1)
	u.counts.add("continued as new", u.continued)
	for _, e := range u.followed {
		u.counts.add(string(e.Tag()), 1)
		if decided, ok := e.Body.(event.ApprovalDecided); ok && len(decided.Parameters) > 0 {
			u.counts.add("edited", 1)
		}
		if result, ok := e.Body.(event.ToolResult); ok && bytes.HasPrefix(result.Error, []byte(`"expired`)) {
			u.counts.add("expired", 1)
		}
	}
	u.counts.add("executed", len(u.tools.executedIn(u.name())))
}

// checkRuns checks that the server ended no run.
func (u *user) checkRuns(ctx context.Context, p *problems) {
	runs := map[enumspb.WorkflowExecutionStatus]int{}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", u.id)}
	for more := true; more; more = len(request.NextPageToken) > 0 {
		page, err := u.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			p.add("list the runs: %w", err)
			return
		}
		for _, run := range page.GetExecutions() {
			runs[run.GetStatus()]++
		}
		request.NextPageToken = page.GetNextPageToken()
	}
	u.continued = runs[enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW]
	for status, n := range runs {
		switch status {
		case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
			if n > u.journal.terminations {
				p.add("%d runs were terminated, %d of them by the user", n, u.journal.terminations)
			}
		default:
			p.add("%d runs are %s", n, status)
		}
	}
}

// checkState compares the state of the session with the fold of the log, which may have grown since.
func checkState(p *problems, name string, log []event.Event, state wire.State) {
	if state.EventCount > len(log) {
		p.add("the session has %d events, but the log has %d", state.EventCount, len(log))
		return
	}
	folded := reducer.Load(name, reducer.Reduce, log[:state.EventCount]...)
	if primary := state.Config.Primary; primary.IsDefault { // which the log does not name
		folded.Options.DefaultProviderID, folded.Options.DefaultModel = primary.ProviderID, primary.Model
	}
	if want, got := encode(wire.StateOf(folded, state.UpdatedAt)), encode(state); !bytes.Equal(want, got) {
		p.add("the session state is not the fold of the log:\n  session %.2000s\n  log     %.2000s", got, want)
	}
}

// checkAnswers compares each answer with the newest message that its request included.
func checkAnswers(p *problems, log []event.Event) {
	steps := map[string]int{} // answers with calls, by message
	for i, e := range log {
		body, ok := e.Body.(event.AssistantMessage)
		if !ok {
			continue
		}
		var m rig.Message
		for _, seen := range slices.Backward(log[:event.Counter(body.ThroughEventID)]) {
			if message, ok := seen.Body.(event.UserMessage); ok {
				m, _ = rig.ParseMessage(message.Content) // valid, sent by the user
				break
			}
		}
		key, tokens := rig.Answered(body.Content)
		want := m.Tokens
		if calls := callsAfter(log, i); len(calls) > 0 {
			want = 1
			if n := steps[key]; n >= len(m.Script.Steps) || !slices.EqualFunc(calls, m.Script.Steps[n], func(c event.ToolCall, scripted rig.Call) bool {
				return c.ToolName == scripted.Name && argumentsOf(c.Parameters) == argumentsOf([]byte(scripted.Arguments))
			}) {
				p.add("%s to %s: the calls of step %d differ from its script", e.ID, key, n+1)
			}
			steps[key]++
		}
		if key != m.Key || !body.Partial && tokens != want || tokens > want {
			p.add("%s answers %q with %d tokens (partial: %v), want %q with %d", e.ID, key, tokens, body.Partial, m.Key, want)
		}
	}
}

func callsAfter(log []event.Event, answer int) (calls []event.ToolCall) {
	for _, e := range log[answer+1:] {
		body, ok := e.Body.(event.ToolCall)
		if !ok || body.MessageID != log[answer].ID {
			break
		}
		calls = append(calls, body)
	}
	return calls
}

func argumentsOf(data []byte) (a arguments) {
	_ = json.Unmarshal(data, &a) // it was encoded by this program
	return a
}

// call is a tool call as the log shows it.
type call struct {
	event.ToolCall
	key                   string // as decided
	isWaiting, isApproved bool
	isEnded, isUnknown    bool // it has a result; and that is a placeholder, which another may replace
	value                 string
}

// checkCalls checks that each call has one result before the next request, that approvals are decided once, and that
// the executions are those that the log permits.
func checkCalls(p *problems, log []event.Event, executed map[string]int) {
	calls := map[string]*call{}
	find := func(id string) *call { return cmp.Or(calls[id], &call{}) } // any event about an unknown id is a problem
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.ToolCall:
			if calls[body.ToolCallID] != nil {
				p.add("%s repeats the id %s of a call", e.ID, body.ToolCallID)
			}
			calls[body.ToolCallID] = &call{ToolCall: body, key: argumentsOf(body.Parameters).Key}
		case event.ApprovalRequested:
			c := find(body.ToolCallID)
			if c.ToolName != toolGuarded || c.isWaiting || c.isEnded {
				p.add("%s requests an approval of %s, which needs none", e.ID, body.ToolCallID)
			}
			c.isWaiting = true
		case event.ApprovalDecided:
			c := find(body.ToolCallID)
			if !c.isWaiting {
				p.add("%s decides about %s, which does not wait", e.ID, body.ToolCallID)
			}
			c.isWaiting, c.isApproved = false, body.Decision == event.Approve
			if len(body.Parameters) > 0 {
				c.key = argumentsOf(body.Parameters).Key
			}
		case event.ToolResult:
			find(body.ToolCallID).end(p, e, body)
		case event.LLMRequestStarted, event.SessionEnded, event.RequestEnd:
			requireResults(p, calls, e.ID)
		}
	}
	requireResults(p, calls, "the end of the log")
	byKey := map[string]*call{}
	for _, c := range calls {
		byKey[c.key] = c
		if c.value != "" && c.ToolName != toolAsk && (executed[c.key] == 0 || c.value != (arguments{Key: c.key}).result()) {
			p.add("call %s of %s has the value %q, after %d executions", c.ToolCallID, c.ToolName, c.value, executed[c.key])
		}
	}
	for key, n := range executed {
		switch c := byKey[key]; {
		case c == nil || c.ToolName == toolAsk:
			p.add("call %s was executed, but is not in the log", key)
		case c.ToolName == toolGuarded && !c.isApproved:
			p.add("call %s was executed without an approval", key)
		case n > 1:
			p.add("call %s was executed %d times", key, n)
		}
	}
}

func requireResults(p *problems, calls map[string]*call, before string) {
	for _, c := range calls {
		if !c.isEnded {
			p.add("call %s has no result before %s", c.ToolCallID, before)
			c.isEnded = true // report it once
		}
	}
}

// end adds a result to a call.
func (c *call) end(p *problems, e event.Event, body event.ToolResult) {
	var failure string
	_ = json.Unmarshal(body.Error, &failure) // ours is a string
	isError := body.IsError || len(body.Error) > 0
	isUnknown := failure == event.OutcomeUnknown
	switch {
	case c.ToolCallID == "":
		p.add("%s is the result of the unknown call %s", e.ID, body.ToolCallID)
	case c.isEnded && !c.isUnknown && !isUnknown:
		p.add("%s is another result of %s", e.ID, body.ToolCallID)
	case c.isWaiting && !isError:
		p.add("%s is the result of %s, which waits for an approval", e.ID, body.ToolCallID)
	case e.ClientEventID != "" && c.ToolName != toolAsk:
		p.add("%s is the result of a client for the worker's call %s", e.ID, body.ToolCallID)
	}
	c.isWaiting, c.isEnded, c.value = false, true, ""
	c.isUnknown = isUnknown || c.ToolName == toolAsk && strings.HasPrefix(failure, "expired: no result")
	if !isError {
		_ = json.Unmarshal(body.Value, &c.value) // ours is a string
	}
}

// checkRequests checks that each request ends once, that none overlap, and that attempts are in order.
func checkRequests(p *problems, log []event.Event) {
	running, attempt, ended := "", 0, map[string]bool{}
	for _, e := range log {
		id := event.RequestOf(e.Body)
		started, isStart := e.Body.(event.LLMRequestStarted)
		if !isStart && !e.Tag().EndsRequest() {
			continue
		}
		if ended[id] || running != "" && running != id {
			p.add("%s %s is of request %s, which ended before: %v; %q is running", e.ID, e.Tag(), id, ended[id], running)
		}
		if !isStart {
			running, attempt, ended[id] = "", 0, true
			continue
		}
		if running = id; started.Attempt <= attempt {
			p.add("%s is attempt %d of %s, after attempt %d", e.ID, started.Attempt, id, attempt)
		}
		attempt = started.Attempt
	}
}

func checkSecrets(p *problems, log []event.Event) {
	for _, e := range log {
		data, err := e.MarshalJSON()
		if err != nil || containsSecret(data) != "" {
			p.add("%s %s contains the secret %q, or is invalid: %w", e.ID, e.Tag(), containsSecret(data), err)
		}
	}
}

func containsSecret(data []byte) string {
	for _, secret := range secrets {
		if bytes.Contains(data, []byte(secret)) {
			return secret
		}
	}
	return ""
}

// checkLogs checks that the logs of the workers and the gateway contain no secret.
func checkLogs(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if len(files) == 0 {
		return errors.Join(errors.New("no process has a log"), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if secret := containsSecret(data); secret != "" {
			at := bytes.Index(data, []byte(secret))
			return fmt.Errorf("%s contains the secret %q:\n%s", file, secret, data[max(0, at-500):min(len(data), at+100)])
		}
	}
	return nil
}

// checkTranscript compares a transcript with the one that is rendered from the log.
func checkTranscript(p *problems, log []event.Event, got transcript.Document) {
	patcher := transcript.NewPatcher()
	for _, e := range log {
		patcher.Apply(e)
	}
	want := patcher.Document().Entries
	for i := range max(len(want), len(got.Entries)) {
		x, y := entry(want, i), entry(got.Entries, i)
		if !bytes.Equal(x, y) {
			p.add("entry %d of %d of the transcript is\n  %.1000s\nwant %d entries with\n  %.1000s", i, len(got.Entries), y, len(want), x)
			return
		}
	}
}

func entry(all []transcript.Item, i int) []byte {
	if i >= len(all) {
		return nil
	}
	item := all[i]
	item.Content.Progress = "" // not in the log
	return encode(item)
}

// checkFold checks that the state that the log folds to is the same if it is encoded and decoded after cut events.
func checkFold(p *problems, log []event.Event, cut int) {
	whole, split := reducer.Initial(), reducer.Initial()
	for i, e := range log {
		if i == cut {
			var decoded reducer.ReducedContext
			if err := json.Unmarshal(encode(split), &decoded); err != nil {
				p.add("decode the state at event %d: %w", i, err)
			}
			split = decoded
		}
		whole, split = reducer.Reduce(whole, e), reducer.Reduce(split, e)
	}
	if x, y := encode(whole), encode(split); !bytes.Equal(x, y) {
		p.add("the state that was decoded at event %d folds to another one:\n  %.2000s\nwant\n  %.2000s", cut, y, x)
	}
}

func tail(log []event.Event) string {
	var b strings.Builder
	for _, e := range log[max(0, len(log)-30):] {
		fmt.Fprintf(&b, "  %s\n", event.Redact(string(encode(e)), 300))
	}
	return b.String()
}
