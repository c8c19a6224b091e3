package aisdk

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// Protocol returns the protocol, for [gateway.Options].
func Protocol() gateway.Protocol {
	p := gateway.Protocol{Path: "/api/", Fail: func(w http.ResponseWriter, p *gateway.Problem) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(p.Status)
		_, _ = io.WriteString(w, p.Error()) // the message of an error of the SDK
	}}
	for _, base := range []struct {
		path    string
		version int
	}{{"/api/chat", 7}, {"/api/v6/chat", 6}} {
		route := func(pattern, operation string, serve func(*session) error, roles ...auth.Role) {
			p.Routes = append(p.Routes, gateway.ProtocolRoute{Pattern: pattern, Operation: operation, Roles: roles, Serve: func(x *gateway.Exchange) error {
				s := &session{exchange: x, version: base.version}
				if id := x.Request.PathValue("id"); id != "" {
					if err := s.open(id); err != nil {
						return err
					}
				}
				return serve(s)
			}})
		}
		route("POST "+base.path, "sendToChat", (*session).post, auth.RoleWrite, auth.RoleApprove)
		route("GET "+base.path+"/{id}/stream", "resumeChat", (*session).resume, auth.RoleRead)
		route("GET "+base.path+"/{id}/messages", "readChat", (*session).read, auth.RoleRead)
		route("POST "+base.path+"/{id}/stop", "stopChat", (*session).stop, auth.RoleWrite)
	}
	return p
}

// session is a request about a chat.
type session struct {
	exchange *gateway.Exchange
	version  int
	root     *gateway.Handle // the context with the name of the chat
	context  *gateway.Handle // the one that continues it
	snapshot gateway.Snapshot
	waiting  func(calls []string) (ofPage []string) // see [thread.Offers]
}

// open finds the context that continues a chat. A deleted one does not.
func (s *session) open(id string) (err error) {
	if s.root, err = s.exchange.Open(id); err != nil {
		return err
	}
	s.use(s.root)
	if s.snapshot, err = s.root.Snapshot(); err != nil || s.snapshot.ContinuedIn == "" {
		return err
	}
	branch, err := s.exchange.Open(s.snapshot.ContinuedIn)
	if err != nil {
		return err
	}
	snapshot, err := branch.Snapshot()
	if err == nil && snapshot.Last != "" {
		s.use(branch)
		s.snapshot = snapshot
	}
	return err
}

func (s *session) use(h *gateway.Handle) { s.context, s.waiting = h, thread.Offers(h) }

// resume streams the running answer from its beginning, and then the answers to messages that wait for it. An answer that
// has just ended counts as running: the page may have read the messages before.
func (s *session) resume() error {
	if s.snapshot.Request != "" {
		return s.join(&reply{id: s.snapshot.Request, resumes: true})
	}
	t, err := s.fold()
	if err != nil {
		return err
	}
	if messages := messagesOf(t); len(messages) > 0 {
		if newest := messages[len(messages)-1].request; newest != nil && time.Since(newest.Ended) < justEnded {
			return s.join(&reply{id: newest.ID})
		}
	}
	s.exchange.NoContent()
	return nil
}

const justEnded = 5 * time.Second

// read returns the initial messages of a page.
func (s *session) read() error {
	t, err := s.fold()
	if err != nil {
		return err
	}
	s.exchange.JSON(http.StatusOK, shown(messagesOf(t), s.waiting))
	return nil
}

// stop interrupts the running answer.
func (s *session) stop() error {
	if err := s.context.Interrupt(); err != nil {
		return err
	}
	s.exchange.NoContent()
	return nil
}

// post takes the input of a page, and streams the answer.
func (s *session) post() error {
	body, err := s.exchange.Body()
	if err != nil {
		return err
	}
	r, err := decode(body)
	if err != nil {
		return err
	}
	if err := s.open(r.ID); err != nil {
		return err
	}
	isRegeneration := r.Trigger == triggerRegenerate
	if r.input.Role == roleAssistant && !isRegeneration {
		return s.continueAnswer(r.input)
	}
	t := &thread.Thread{}
	if isRegeneration || r.MessageID != "" {
		if t, err = s.fold(); err != nil {
			return err
		}
	}
	id := cmp.Or(r.MessageID, r.input.ID)
	known, answer := userWith(t, id), t.Request(id)
	switch {
	case isRegeneration && known != nil:
		return s.regenerate(answerTo(messagesOf(t), id))
	case isRegeneration && answer != nil:
		return s.regenerate(answerMessage(answer))
	case r.input.Role == roleAssistant, r.MessageID != "" && known == nil:
		return unknown(id)
	}
	events, err := r.input.events(s)
	switch {
	case err != nil:
		return err
	case r.MessageID != "": // an edited message is replaced, with all after it
		return s.branch(client.BranchOptions{Before: known.First(), Events: events})
	}
	return s.send(events...)
}

// userWith returns the newest message of the user with an id; nil if there is none.
func userWith(t *thread.Thread, id string) *thread.User {
	for _, in := range slices.Backward(t.Entries) {
		if in.User != nil && userID(in.User) == id {
			return in.User
		}
	}
	return nil
}

func unknown(id string) error {
	return gateway.BadRequest("messages", "the chat has no message %q (load its messages again)", event.Redact(id, 0))
}

// regenerate replaces an answer, joins one that runs, and repeats a request that has none.
func (s *session) regenerate(m *message) error {
	if m != nil {
		m.settle(s.waiting)
	}
	switch {
	case m == nil || m.first() == "" && m.request.IsEnded:
		return s.send(event.New(event.AnswerRequested{}))
	case m.request.IsEnded || m.waits():
		return s.branch(client.BranchOptions{Regenerate: m.first()})
	}
	return s.join(&reply{id: m.ID})
}

// continueAnswer sends what the page decided and executed, and streams what it does not have of the answer.
func (s *session) continueAnswer(input message) error {
	state, err := s.context.State()
	if err != nil {
		return err
	}
	r := &reply{id: input.ID, writer: writer{has: input.Parts}}
	if state.Request != nil {
		if events := input.answers(state.Request.Calls); len(events) > 0 { // otherwise others decided
			receipt, err := s.context.Send(events...)
			if err != nil {
				return err
			}
			r.sent = receipt.ClientEventIDs
		}
	}
	return s.join(r)
}

// send sends events and streams the answer to them. It may have begun before, also because the request is a repetition.
func (s *session) send(events ...event.Event) error {
	receipt, err := s.context.Send(events...)
	if err != nil {
		return err
	}
	from := s.snapshot.Last
	if s.snapshot.Request != "" {
		from = s.snapshot.Before
	}
	switch {
	case len(receipt.EventIDs) == 0:
		from = ""
	case event.Counter(receipt.EventIDs[0]) <= event.Counter(from):
		from = event.IDBefore(s.context.Name(), event.Counter(receipt.EventIDs[0]))
	}
	return s.stream(from, &reply{sent: receipt.ClientEventIDs})
}

// branch continues the chat in a branch, and streams the answer there.
func (s *session) branch(o client.BranchOptions) error {
	created, err := s.context.Branch(o)
	if err == nil {
		err = s.root.ContinueIn(created.ContextName)
	}
	var branch *gateway.Handle
	if err == nil {
		branch, err = s.exchange.Open(created.ContextName)
	}
	if err != nil {
		return err
	}
	s.use(branch)
	from := event.FormatID(created.ContextName, event.Counter(created.ForkedFrom))
	return s.stream(from, &reply{sent: created.Receipt.ClientEventIDs})
}

// join streams an answer as the log has it now, and how it goes on.
func (s *session) join(r *reply) error {
	r.from = event.Counter(s.snapshot.Last)
	if r.id != s.snapshot.Request { // it ended
		return s.stream("", r)
	}
	return s.stream(s.snapshot.Before, r)
}

// stream follows the context after an event, until the answer ends or waits.
func (s *session) stream(from string, r *reply) error {
	r.writer.version, r.waiting, r.thread.Clients = s.version, s.waiting, thread.Clients(s.snapshot.Setup.Tools)
	s.exchange.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	return s.exchange.Stream(s.context, from, gateway.Stream{
		Next: func(item gateway.Item) ([]byte, error) {
			r.apply(item)
			chunks, isLast := r.flush()
			if isLast {
				return append(frames(chunks), done...), io.EOF
			}
			return frames(chunks), nil
		},
		Fail: func(p *gateway.Problem) []byte {
			return append(frames([]chunk{{"type": "error", "errorText": p.Error()}}), done...)
		},
	})
}

var done = gateway.Frame("", "", []byte("[DONE]"))

func frames(chunks []chunk) (out []byte) {
	for _, c := range chunks {
		data, _ := json.Marshal(c) // a chunk always encodes
		out = append(out, gateway.Frame("", "", data)...)
	}
	return out
}

// fold reads the whole chat, which may be empty.
func (s *session) fold() (*thread.Thread, error) {
	t := &thread.Thread{Base: s.exchange.PublicPath()}
	for e, err := range s.context.Events("") {
		if errors.Is(err, client.ErrNoContext) {
			break
		}
		if err != nil {
			return nil, err
		}
		t.Apply(gateway.Item{Event: e})
	}
	return t, nil
}
