package a2a

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

const (
	maxParts      = 20 // of a message
	extraMetadata = "metadata"
)

type sendParams struct {
	common
	Message       *message `json:"message"`
	Configuration struct {
		AcceptedOutputModes []string        `json:"acceptedOutputModes"`
		Push                json.RawMessage `json:"taskPushNotificationConfig"`
		HistoryLength       *int            `json:"historyLength"`
		ReturnImmediately   bool            `json:"returnImmediately"`
	} `json:"configuration"`
}

func (in sendParams) check() error {
	m, config := in.Message, in.Configuration
	isText := func(mode string) bool { return strings.HasPrefix(mode, "text") || strings.HasPrefix(mode, "*") }
	switch {
	case m == nil:
		return gateway.BadRequest("message", "message is missing")
	case m.MessageID == "" || len(m.MessageID) > thread.MaxMessageID:
		return gateway.BadRequest("message.messageId", "messageId has %d bytes (1 to %d)", len(m.MessageID), thread.MaxMessageID)
	case m.Role != roleUser:
		return gateway.BadRequest("message.role", "role is %q (want %s)", event.Redact(string(m.Role), 40), roleUser)
	case len(m.Parts) == 0 || len(m.Parts) > maxParts:
		return gateway.BadRequest("message.parts", "the message has %d parts (1 to %d)", len(m.Parts), maxParts)
	case len(config.Push) > 0 && string(config.Push) != "null":
		return noPush(nil)
	case len(config.AcceptedOutputModes) > 0 && !slices.ContainsFunc(config.AcceptedOutputModes, isText):
		return failure(contentNotSupported, "acceptedOutputModes lacks text/plain, the type of all answers")
	}
	for _, id := range m.ReferenceTaskIDs {
		if m.ContextID == "" || id != event.FormatID(m.ContextID, event.Counter(id)) {
			return gateway.BadRequest("message.referenceTaskIds", "task %s is not in the context of the message, whose model does not see it", event.Redact(id, 200))
		}
	}
	return common{in.Tenant, config.HistoryLength}.check()
}

func send(r *request, isStream bool) error {
	in, err := decode[sendParams](r)
	if err != nil {
		return err
	}
	begin := begin
	if in.Message.TaskID != "" {
		begin = reply
	}
	h, t, err := begin(r, in.Message)
	if err != nil {
		return err
	}
	if isStream {
		return r.stream(h, t, in.Configuration.HistoryLength, t.stops(h))
	}
	if !in.Configuration.ReturnImmediately {
		if err := t.await(h, t.stops(h)); err != nil {
			return err
		}
	}
	return r.reply(map[string]any{"task": t.show(in.Configuration.HistoryLength)})
}

// stops returns a function that reports whether the task has ended, or waits for its client.
func (t *turn) stops(h *gateway.Handle) func() bool {
	offers := thread.Offers(h)
	return func() bool {
		if !t.isPaused() {
			return t.isDone()
		}
		results, _ := t.request.Waiting()
		ids := make([]string, len(results))
		for i, c := range results {
			ids[i] = c.ToolCallID
		}
		return len(offers(ids)) == len(results)
	}
}

// await folds what follows until it is enough.
func (t *turn) await(h *gateway.Handle, isEnough func() bool) error {
	if isEnough() {
		return nil
	}
	for item, err := range h.Follow(t.last()) {
		if err != nil {
			return err
		}
		if t.add(item); isEnough() {
			return nil
		}
	}
	return context.Canceled
}

// begin sends a message that begins a task. A repeated message returns its task.
func begin(r *request, m *message) (*gateway.Handle, *turn, error) {
	name := m.ContextID
	if name == "" { // a repeated message finds its context
		text, _ := json.Marshal(m) // texts and JSON always encode
		sum := sha256.Sum256(append(text, r.x.Identity().Subject...))
		name = "a2a-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20]))
	}
	h, err := r.x.Open(name)
	if err != nil {
		return nil, nil, err
	}
	events, err := m.events()
	if err != nil {
		return nil, nil, err
	}
	before, err := h.Snapshot()
	if err != nil {
		return nil, nil, err
	}
	sent, err := h.Send(events...)
	if errors.Is(err, client.ErrRefused) && !errors.Is(err, client.ErrKeyReused) && sent.RefusalID != "" {
		sent.EventIDs, err = []string{sent.RefusalID}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	t, from := newTurn(name, r.newThread(before.Setup.Tools), 0), ""
	if len(sent.EventIDs) > 0 {
		from = event.IDBefore(name, event.Counter(sent.EventIDs[0]))
	}
	for item, err := range h.Follow(from) {
		if err != nil {
			return nil, nil, err
		}
		if isRecord(item.Event, sent) {
			t.beginAt(event.Counter(item.Event.ID))
		}
		if t.add(item); t.Status.State != "" {
			return h, t, nil
		}
	}
	return nil, nil, context.Canceled
}

// isRecord reports whether an event is the newest one of an input, or its rejection.
func isRecord(e event.Event, sent client.Receipt) bool {
	if n := len(sent.EventIDs); n > 0 {
		return e.ID == sent.EventIDs[n-1]
	}
	_, isRejection := e.Body.(event.InputRejected)
	return e.ClientEventID == sent.ClientEventIDs[len(sent.ClientEventIDs)-1] || isRejection && slices.Contains(sent.ClientEventIDs, e.ClientEventID)
}

// events returns the input for a context: the files and the text.
func (m *message) events() ([]event.Event, error) {
	var events []event.Event
	var texts []string
	for i, p := range m.Parts {
		from := p.URL
		switch {
		case p.Text != nil:
			texts = append(texts, *p.Text)
			continue
		case p.Data != nil:
			return nil, failure(contentNotSupported, "a data part is the reply to a task that waits for input (send other JSON as text)")
		case p.Raw != "":
			from = "data:" + mime.TypeByExtension(path.Ext(p.Filename)) + ";base64," + p.Raw
		case p.URL == "":
			return nil, gateway.BadRequest("message.parts", "part %d has neither text, raw, url nor data", i)
		}
		file, err := thread.Attach(p.Filename, p.MediaType, from)
		if err != nil {
			return nil, err
		}
		file.MediaType = cmp.Or(file.MediaType, "application/octet-stream")
		events = append(events, m.event(i+1, file))
	}
	e := m.event(0, event.UserMessage{Content: strings.Join(texts, "\n\n")})
	if len(m.Metadata) > 0 {
		e.Extra = map[string]json.RawMessage{extraMetadata: m.Metadata}
	}
	return append(events, e), nil
}

// event returns an event of the message. That with the number 0 has its id.
func (m *message) event(n int, body event.Body) event.Event {
	e := event.New(body)
	if e.ClientEventID = m.MessageID; n > 0 {
		e.ClientEventID = thread.FileID(m.MessageID, n)
	}
	return e
}

// reply sends what a task waits for. A repeated message sends nothing.
func reply(r *request, m *message) (*gateway.Handle, *turn, error) {
	h, t, err := load(r, m.TaskID)
	switch {
	case err != nil:
		return nil, nil, err
	case m.ContextID != "" && m.ContextID != t.ContextID:
		return nil, nil, gateway.BadRequest("message.contextId", "the task is in the context %s", t.ContextID)
	case len(t.History) > 0 && t.History[0].MessageID == m.MessageID:
		return nil, nil, gateway.BadRequest("message.messageId", "the message that began the task has this messageId (want a new UUID)")
	case t.has(m.MessageID):
		return h, t, nil
	case !t.isPaused():
		return nil, nil, failure(unsupportedOperation, "the task waits for no input: it is %s (send the message without taskId to begin another task)", t.Status.State)
	}
	events, err := t.replies(m)
	var sent client.Receipt
	if err == nil {
		sent, err = h.Send(events...)
	}
	if err == nil {
		err = t.awaitRecord(h, sent)
	}
	return h, t, err
}

// awaitRecord folds what follows up to the record of an input. The error is client.ErrRefused if the context rejects it.
func (t *turn) awaitRecord(h *gateway.Handle, sent client.Receipt) error {
	if n := len(sent.EventIDs); n > 0 && event.Counter(sent.EventIDs[n-1]) <= t.thread.Last {
		return nil // of a repeated message
	}
	for item, err := range h.Follow(t.last()) {
		if err != nil {
			return err
		}
		if t.add(item); !isRecord(item.Event, sent) && !t.isDone() {
			continue
		}
		if body, ok := item.Event.Body.(event.InputRejected); ok {
			return client.Refused(body.Reason)
		}
		return nil
	}
	return context.Canceled
}

// replies returns the decisions and results in a message.
func (t *turn) replies(m *message) (events []event.Event, err error) {
	waiting := t.waiting()
	for i, p := range m.Parts {
		var data toolCall
		switch {
		case p.Text != nil && len(waiting) == 1 && waiting[0].IsAsked():
			word, reason, _ := strings.Cut(strings.TrimSpace(*p.Text), " ")
			data.Decision, data.Reason = event.Decision(strings.ToLower(word)), reason
		case p.Text != nil:
			data.Result, _ = json.Marshal(*p.Text) // a text always encodes
		case p.Data == nil:
			return nil, failure(contentNotSupported, "a task that waits for input takes text and data parts")
		case gateway.DecodeStrictly(p.Data, &data) != nil: // misspelt arguments would run the call with the original ones
			return nil, gateway.BadRequest("message.parts", `part %d is no object like {"toolCallId":"…","decision":"approve"} or {"toolCallId":"…","result":…}`, i)
		}
		at := slices.IndexFunc(waiting, func(c *thread.Call) bool {
			return c.ToolCallID == data.ToolCallID || data.ToolCallID == "" && len(waiting) == 1
		})
		if at < 0 {
			return nil, gateway.BadRequest("message.parts", "part %d: no call waits with the toolCallId %q (the status message of the task lists them)", i, event.Redact(data.ToolCallID, 80))
		}
		body, err := data.reply(waiting[at])
		if err != nil {
			return nil, err
		}
		events = append(events, m.event(i, body))
	}
	return events, nil
}

// reply returns the event that decides or answers a call.
func (data toolCall) reply(c *thread.Call) (event.Body, error) {
	switch {
	case c.IsAsked() && (data.Decision == event.Approve || data.Decision == event.Deny):
		return event.ApprovalDecided{ToolCallID: c.ToolCallID, Decision: data.Decision, Reason: data.Reason, Parameters: data.Arguments}, nil
	case c.IsAsked():
		return nil, gateway.BadRequest("message.parts", `call %s waits for a decision (the text "approve", or "deny" with a reason)`, c.ToolCallID)
	case len(data.Result)+len(data.Error) == 0:
		return nil, gateway.BadRequest("message.parts", "call %s waits for a result (a text, or data with result or error)", c.ToolCallID)
	}
	return event.ToolResult{ToolCallID: c.ToolCallID, Value: data.Result, Error: data.Error, IsError: len(data.Error) > 0}, nil
}
