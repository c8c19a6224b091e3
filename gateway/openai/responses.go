package openai

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// ask is a request for an answer, and where it goes.
type ask struct {
	*request
	x      *gateway.Exchange
	body   []byte
	h      *gateway.Handle
	isOwn  bool // the context was made for the request
	isSent bool // the context has the input
	isFork bool
}

func createResponse(x *gateway.Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	a := &ask{request: new(request), x: x, body: body}
	if err := decode(body, a.request); err != nil {
		return err
	}
	isKept := a.Store == nil || *a.Store
	switch {
	case a.Conversation != "" && a.Previous != nil:
		return gateway.BadRequest("previous_response_id", "previous_response_id and conversation exclude each other")
	case a.Background && !isKept:
		return gateway.BadRequest("background", "background requires store")
	case (a.Conversation != "" || a.Previous != nil) && !isKept:
		return unsupported("store", "what a conversation has is stored (leave store out)")
	}
	if err := a.locate(); err != nil {
		return err
	}
	in, err := readInput(a.Input, a.approval)
	if err != nil {
		return err
	}
	if !isKept {
		defer a.discard()
	}
	t, from, err := a.send(in)
	if err != nil {
		return err
	}
	if a.Stream {
		return stream(x, a.h, t, from)
	}
	if !a.Background {
		if err := follow(a.h, t, from); err != nil {
			return err
		}
	} else if err := read(a.h, t, from); err != nil {
		return err
	}
	x.JSON(http.StatusOK, t.response)
	return nil
}

// discard closes a context that was made for the request, and deletes it if it is not to be stored. Nobody else knows it,
// unless it rejected the input: then another request has used the Idempotency-Key.
func (a *ask) discard() {
	if !a.isSent {
		return
	}
	_ = a.h.Close("completed")
	if a.Store != nil && !*a.Store {
		_ = a.h.Delete()
	}
}

// locate finds the context of a request: a conversation, that of the previous response, a fork of it, or a new one.
func (a *ask) locate() (err error) {
	switch {
	case a.Conversation != "":
		a.h, err = a.x.Open(string(a.Conversation))
		return err
	case a.Previous == nil:
		a.isOwn = true
		name, err := newName(a.x, ownPrefix)
		if err == nil {
			a.h, err = a.x.Open(name)
		}
		return err
	}
	h, t, from, err := load(a.x, "previous_response_id", *a.Previous)
	if err != nil {
		return err
	}
	key, err := a.x.IdempotencyKey()
	if err != nil {
		return err
	}
	end, isNewest, err := endOf(h, t, from, event.KeyedIDs(key, a.body)(0))
	if err != nil {
		return err
	}
	a.h = h
	if isNewest {
		return nil
	}
	a.isFork = true
	return a.fork(h, end)
}

// endOf reads the log from a response on, and returns the event with which the response ended, and whether nothing that
// belongs to the conversation follows it, or the input of an earlier request with the same first id.
func endOf(h *gateway.Handle, t *turn, from, repeated string) (end string, isNewest bool, err error) {
	isNewest = true
	for e, err := range h.Events(from) {
		if err != nil {
			return "", false, err
		}
		if !t.isDone {
			t.add(gateway.Item{Event: e})
			end = e.ID
			continue
		}
		if e.ClientEventID == repeated {
			return end, true, nil
		}
		switch e.Body.(type) {
		case event.UserMessage, event.AnswerRequested, event.AssistantMessage, event.ToolResult, event.ApprovalDecided:
			isNewest = false
		}
	}
	return end, isNewest, nil
}

// fork continues a context at an event. A repeated request with an Idempotency-Key finds the fork of the first one.
func (a *ask) fork(from *gateway.Handle, at string) error {
	key, err := a.x.IdempotencyKey()
	if err != nil {
		return err
	}
	name := ""
	if key != "" {
		if name, err = newName(a.x, ownPrefix); err != nil {
			return err
		}
	}
	created, err := from.Branch(client.BranchOptions{Name: name, At: at})
	if errors.Is(err, client.ErrExists) && key != "" {
		created.ContextName, err = name, nil
	}
	if err == nil {
		a.h, err = a.x.Open(created.ContextName)
	}
	return err
}

// newName returns the name of a context for a request, which an Idempotency-Key decides.
func newName(x *gateway.Exchange, prefix string) (string, error) {
	key, err := x.IdempotencyKey()
	if key == "" || err != nil {
		return prefix + strings.ToLower(rand.Text()), err
	}
	sum := sha256.Sum256([]byte(key))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20])), nil
}

// approval returns the tool call of an item that requested an approval.
func (a *ask) approval(id string) (string, error) {
	unknown := gateway.BadRequest("input", "approval_request_id %q is unknown in this conversation", event.Redact(id, 200))
	name, counter, ok := parseID(approvalPrefix, id)
	if !ok || counter < 2 || name != a.h.Name() {
		return "", unknown
	}
	for e, err := range a.h.Events(event.FormatID(name, counter-1)) {
		if err != nil {
			return "", err
		}
		if body, ok := e.Body.(event.ApprovalRequested); ok && event.Counter(e.ID) == counter {
			return body.ToolCallID, nil
		}
		break
	}
	return "", unknown
}

// send sends the input, and returns the turn that follows from an event on.
func (a *ask) send(in *script) (t *turn, from string, err error) {
	before, err := a.h.Snapshot()
	if err != nil {
		return nil, "", err
	}
	settings, err := a.settings()
	if err != nil {
		return nil, "", err
	}
	events, err := a.setup(before.Setup, in.instructions(a.Instructions))
	if err != nil {
		return nil, "", err
	}
	key, err := a.x.IdempotencyKey()
	if err != nil {
		return nil, "", err
	}
	id := event.KeyedIDs(key, a.body)
	continues := before.Request != ""
	if key != "" && !continues && in.endsWithResult() && !in.repeats() {
		if continues, err = a.isRecorded(id(len(in.events) - 1)); err != nil {
			return nil, "", err
		}
	}
	if err := in.finish(settings, continues && !a.isFork && !in.repeats()); err != nil {
		return nil, "", err
	}
	if in.endsWithResult() && continues && changes(before.Setup.Turn, settings) {
		return nil, "", gateway.BadRequest("", "settings that differ from those of the turn are not supported with results of functions")
	}
	if key != "" {
		// A repeated request needs no setup, but must give its messages the same ids.
		for i := range in.events {
			in.events[i].ClientEventID = id(i)
		}
		for i := range events {
			events[i].ClientEventID = id(event.MaxInputEvents + slices.Index(setupTags, events[i].Tag()))
		}
	}
	events = append(events, in.events...)
	r := record{Functions: functionsOf(before.Setup.Tools), Metadata: a.Metadata, Background: a.Background}
	for _, e := range events {
		if body, ok := e.Body.(event.SetTools); ok {
			r.Functions = functionsOf(body)
		}
	}
	if a.Previous != nil {
		r.Previous = *a.Previous
	}
	r.attach(events)
	sent, err := a.h.Send(events...)
	if err != nil {
		return nil, "", err
	}
	a.isSent = true
	a.x.Header().Set("X-Should-Retry", "false") // the input is stored; clients of OpenAI send it again otherwise
	counter, err := a.recorded(sent)
	if err != nil {
		return nil, "", err
	}
	t = newTurn(a.h.Name(), counter, r)
	a.echo(&t.response)
	from, err = begin(a.h, events[len(events)-1].Body, counter)
	return t, from, err
}

// isRecorded reports whether an earlier request has sent an event.
func (a *ask) isRecorded(clientEventID string) (bool, error) {
	for e, err := range a.h.Events("") {
		switch {
		case errors.Is(err, client.ErrNoContext):
			return false, nil
		case err != nil:
			return false, err
		case e.ClientEventID == clientEventID:
			return true, nil
		}
	}
	return false, nil
}

// changes reports whether settings change those of a turn. The choice of a tool applies to the first step of a turn only.
func changes(turn, settings event.RequestSettings) bool {
	turn.ToolChoice, settings.ToolChoice = nil, nil
	return !reflect.DeepEqual(turn.Override(settings), turn)
}

// begin returns the event after which a reader of a turn begins. One that continues a request begins with that, which has
// the calls.
func begin(h *gateway.Handle, trigger event.Body, counter int) (from string, err error) {
	if event.RequiresAnswer(trigger) {
		return before(h.Name(), counter), nil
	}
	first := 0 // event of the running request; 0: none runs
	for e, err := range h.Events("") {
		if err != nil {
			return "", err
		}
		n := event.Counter(e.ID)
		if n >= counter {
			break
		}
		switch e.Body.(type) {
		case event.LLMRequestStarted:
			first = cmp.Or(first, n)
		case event.RequestEnd, event.SessionEnded:
			first = 0
		}
	}
	return before(h.Name(), cmp.Or(first, counter)), nil
}

func before(name string, counter int) string {
	if counter <= 1 {
		return ""
	}
	return event.FormatID(name, counter-1)
}

// recorded returns the counter of the newest event of an input, and waits until a worker has recorded it. The log may have
// it from an earlier request.
func (a *ask) recorded(sent client.Receipt) (int, error) {
	if n := len(sent.EventIDs); n > 0 {
		return event.Counter(sent.EventIDs[n-1]), nil
	}
	newest := sent.ClientEventIDs[len(sent.ClientEventIDs)-1]
	for item, err := range a.h.Follow("") {
		if err != nil {
			return 0, err
		}
		body, isRejected := item.Event.Body.(event.InputRejected)
		switch {
		case isRejected && slices.Contains(sent.ClientEventIDs, item.Event.ClientEventID):
			return 0, &gateway.Problem{Type: "urn:chronicle:problem:refused", Status: http.StatusConflict, Title: "The context rejected the input", Detail: body.Reason}
		case item.Event.ClientEventID == newest:
			return event.Counter(item.Event.ID), nil
		}
	}
	return 0, context.Canceled
}

// echo repeats the fields of the request.
func (a *ask) echo(r *response) {
	r.Instructions, r.MaxOutputTokens, r.Temperature, r.TopP = a.Instructions, a.MaxOutputTokens, a.Temperature, a.TopP
	if r.Model == "" {
		r.Model = a.Model
	}
	if a.Reasoning != nil {
		r.Reasoning = *a.Reasoning
	}
	if a.Text != nil && a.Text.Format.Type != "" {
		r.Text = *a.Text
	}
	if a.ParallelToolCalls != nil {
		r.ParallelToolCalls = *a.ParallelToolCalls
	}
	if len(a.ToolChoice) > 0 {
		r.ToolChoice = a.ToolChoice
	}
	if a.Store != nil {
		r.Store = *a.Store
	}
	for _, t := range a.Tools {
		if t.Type == "function" {
			r.Tools = append(r.Tools, functionTool(t.Name, t.Description, t.Parameters))
		}
	}
}

func functionTool(name, description string, parameters event.Object) map[string]any {
	return map[string]any{"type": "function", "name": name, "description": description, "parameters": json.RawMessage(parameters), "strict": nil}
}

func newTurn(name string, trigger int, r record) *turn {
	t := &turn{trigger: trigger, isClient: setOf(r.Functions), after: -1}
	t.response = response{
		ID: formatID(responsePrefix, name, trigger), Object: "response", name: name, Status: "", Output: []item{}, Tools: []any{},
		ParallelToolCalls: true, Store: true, ToolChoice: "auto", Truncation: "disabled", Conversation: &reference{name},
		Text: textConfig{Format: format{Type: event.FormatText}}, Metadata: r.Metadata, Background: r.Background,
	}
	if r.Metadata == nil {
		t.response.Metadata = map[string]string{}
	}
	if r.Previous != "" {
		t.response.Previous = &r.Previous
	}
	return t
}

// load finds a response by its id. A reader of the turn begins after the event from.
func load(x *gateway.Exchange, field, id string) (h *gateway.Handle, t *turn, from string, err error) {
	unknown := &gateway.Problem{
		Type: "urn:chronicle:problem:not-found", Status: http.StatusNotFound, Title: "Response not found", Detail: event.Redact(id, 200), Field: field,
	}
	name, counter, ok := parseID(responsePrefix, id)
	if !ok {
		return nil, nil, "", unknown
	}
	if h, err = x.Open(name); err != nil {
		return nil, nil, "", err
	}
	var r record
	isRecorded, isTrigger := false, false
	var trigger event.Body
	for e, err := range h.Events(before(name, max(1, counter-1))) {
		if errors.Is(err, client.ErrNoContext) || errors.Is(err, client.ErrNoEvent) {
			return nil, nil, "", unknown
		}
		if err != nil {
			return nil, nil, "", err
		}
		n := event.Counter(e.ID)
		if n > counter {
			break
		}
		_, isResult := e.Body.(event.ToolResult)
		_, isDecision := e.Body.(event.ApprovalDecided)
		trigger = e.Body
		isTrigger = n == counter && (isResult || isDecision || event.RequiresAnswer(e.Body))
		if of, ok := recordOf(e); ok {
			r, isRecorded = of, true
		}
	}
	if !isTrigger {
		return nil, nil, "", unknown
	}
	if !isRecorded {
		now, err := h.Snapshot()
		if err != nil {
			return nil, nil, "", err
		}
		r.Functions = functionsOf(now.Setup.Tools)
	}
	t = newTurn(name, counter, r)
	for _, name := range r.Functions {
		t.response.Tools = append(t.response.Tools, functionTool(name, "", nil))
	}
	from, err = begin(h, trigger, counter)
	return h, t, from, err
}

// read folds the log.
func read(h *gateway.Handle, t *turn, from string) error {
	for e, err := range h.Events(from) {
		if err != nil {
			return err
		}
		if t.add(gateway.Item{Event: e}); t.isDone {
			break
		}
	}
	return nil
}

// follow folds the log until the response has ended.
func follow(h *gateway.Handle, t *turn, from string) error {
	for item, err := range h.Follow(from) {
		if err != nil {
			return err
		}
		if t.add(item); t.isDone {
			return nil
		}
	}
	return context.Canceled
}

func stream(x *gateway.Exchange, h *gateway.Handle, t *turn, from string) error {
	var frames []byte
	t.emit = func(kind string, fields map[string]any) {
		data, _ := json.Marshal(fields) // texts, numbers and items always encode
		frames = append(frames, gateway.Frame("", kind, data)...)
	}
	return x.Stream(h, from, gateway.Stream{
		Next: func(in gateway.Item) ([]byte, error) {
			frames = nil
			if t.add(in); t.isDone {
				return frames, io.EOF
			}
			return frames, nil
		},
		Fail: func(p *gateway.Problem) []byte {
			data, _ := json.Marshal(map[string]any{
				"type": "error", "code": code(p), "message": p.Error(), "param": nil, "sequence_number": t.number(t.last, t.sub),
			})
			return gateway.Frame("", "error", data)
		},
	})
}

func getResponse(x *gateway.Exchange) error {
	h, t, from, err := load(x, "response_id", x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	query := x.Request.URL.Query()
	isStream, err := wantsStream(x)
	if err != nil {
		return err
	}
	if !isStream {
		if err := read(h, t, from); err != nil {
			return err
		}
		x.JSON(http.StatusOK, t.response)
		return nil
	}
	if text := query.Get("starting_after"); text != "" {
		after, err := strconv.ParseInt(text, 10, 64)
		if err != nil || after < 0 {
			return gateway.BadRequest("starting_after", "starting_after %q is invalid (want the sequence_number of an event)", event.Redact(text, 50))
		}
		past := *t
		if err := read(h, &past, from); err != nil {
			return err
		}
		if after >= past.number(past.last+1, 0) {
			return gateway.BadRequest("starting_after", "starting_after %d is after the newest event", after)
		}
		t.after = after
	}
	return stream(x, h, t, from)
}

// wantsStream reads the query, or the body that openai-go sends with GET.
func wantsStream(x *gateway.Exchange) (bool, error) {
	var in struct {
		Stream bool `json:"stream"`
	}
	if x.Request.ContentLength > 0 {
		body, err := io.ReadAll(io.LimitReader(x.Request.Body, 1<<10)) // it has no Content-Type
		if err != nil || decode(body, &in) != nil {
			return false, gateway.BadRequest("", "the body is invalid (want none)")
		}
	}
	return in.Stream || x.Request.URL.Query().Get("stream") == "true", nil
}

// cancelResponse stops the answer of a response. One that has ended stays as it is.
func cancelResponse(x *gateway.Exchange) error {
	h, t, from, err := load(x, "response_id", x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	past := *t
	if err := read(h, &past, from); err != nil {
		return err
	}
	if !past.isDone {
		now, err := h.Snapshot()
		if err != nil {
			return err
		}
		if past.request == "" || now.Request != past.request {
			return gateway.BadRequest("", "the response is queued behind another answer (cancel that, or wait)")
		}
		if err := h.Interrupt(); err != nil {
			return err
		}
	}
	if err := follow(h, t, from); err != nil {
		return err
	}
	x.JSON(http.StatusOK, t.response)
	return nil
}

// deleteResponse deletes the context that was made for a response.
func deleteResponse(x *gateway.Exchange) error {
	id := x.Request.PathValue("id")
	h, _, _, err := load(x, "response_id", id)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(h.Name(), ownPrefix) {
		return unsupported("", "a response in a conversation cannot be deleted (delete the conversation)")
	}
	if err := h.Delete(); err != nil {
		return err
	}
	x.JSON(http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
	return nil
}

func listInputItems(x *gateway.Exchange) error {
	h, t, _, err := load(x, "response_id", x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	return writeItems(x, h, t.trigger)
}
