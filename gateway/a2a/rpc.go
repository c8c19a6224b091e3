package a2a

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

const (
	version  = "1.0"
	endpoint = "/a2a/" // many clients add the slash at the end
)

var (
	readers = []auth.Role{auth.RoleRead}
	writers = []auth.Role{auth.RoleWrite}
	senders = []auth.Role{auth.RoleWrite, auth.RoleApprove} // each event requires one of them
)

// Protocols serve the operations and the agent card.
func Protocols(o Options) []gateway.Protocol {
	return []gateway.Protocol{
		{Path: endpoint, Fail: fail, Routes: []gateway.ProtocolRoute{{Pattern: "POST " + endpoint + "{$}", Operation: "a2a", Roles: readers, Serve: o.serve}}},
		{Path: cardPath, Fail: fail, Routes: []gateway.ProtocolRoute{{Pattern: "GET " + cardPath, Operation: "a2aCard", Roles: []auth.Role{}, Serve: o.card}}},
	}
}

// request is a request of JSON-RPC.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`

	x    *gateway.Exchange
	base string // the URL of the gateway
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

var operations = map[string]struct {
	roles []auth.Role
	serve func(*request) error
}{
	"SendMessage":          {senders, func(r *request) error { return send(r, false) }},
	"SendStreamingMessage": {senders, func(r *request) error { return send(r, true) }},
	"GetTask":              {readers, onTask(getTask)},
	"ListTasks":            {readers, listTasks},
	"CancelTask":           {writers, onTask(cancelTask)},
	"SubscribeToTask":      {readers, onTask(subscribe)},

	"CreateTaskPushNotificationConfig": {readers, noPush},
	"GetTaskPushNotificationConfig":    {readers, noPush},
	"ListTaskPushNotificationConfigs":  {readers, noPush},
	"DeleteTaskPushNotificationConfig": {readers, noPush},
	"GetExtendedAgentCard": {readers, func(*request) error {
		return failure(unsupportedOperation, "the agent has no extended card")
	}},
}

func noPush(*request) error {
	return failure(pushNotSupported, "subscribe to the task; the operator of the gateway can configure webhooks")
}

func (o Options) serve(x *gateway.Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	r := &request{x: x, base: o.base(x.Request)}
	if err := json.Unmarshal(body, r); err != nil && !json.Valid(body) {
		return failure(parseError, "")
	} else if err != nil || r.Version != "2.0" || len(r.ID) == 0 || r.Method == "" {
		return failure(invalidRequest, "want an object with jsonrpc, id, method and params")
	}
	x.ReplyTo(r.ID)
	asked := x.Request.Header.Get("A2A-Version")
	if asked == "" {
		asked = x.Request.URL.Query().Get("A2A-Version")
	}
	if asked != version && !strings.HasPrefix(asked, version+".") {
		return failure(versionNotSupported, "A2A-Version is %q (want %s)", event.Redact(asked, 40), version)
	}
	operation, ok := operations[r.Method]
	if !ok {
		return failure(methodNotFound, "%s", event.Redact(r.Method, 80))
	}
	if err := x.Perform("a2a"+r.Method, operation.roles...); err != nil {
		return err
	}
	return operation.serve(r)
}

// common are parameters of most operations.
type common struct {
	Tenant        string `json:"tenant"`
	HistoryLength *int   `json:"historyLength"` // number of messages of a history; nil: all
}

func (c common) check() error {
	switch {
	case c.Tenant != "":
		return gateway.BadRequest("tenant", "the tenant is that of the credential (leave it out)")
	case c.HistoryLength != nil && *c.HistoryLength < 0:
		return gateway.BadRequest("historyLength", "historyLength is %d (0 or more)", *c.HistoryLength)
	}
	return nil
}

// decode returns the parameters of a request.
func decode[T interface{ check() error }](r *request) (params T, err error) {
	err = json.Unmarshal(r.Params, &params)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return params, gateway.BadRequest(mismatch.Field, "%s has the wrong type: %s", mismatch.Field, mismatch.Value)
	case err != nil:
		return params, gateway.BadRequest("params", "params is invalid: %s", event.Redact(err.Error(), 200))
	}
	return params, params.check()
}

// reply writes the response.
func (r *request) reply(result any) error {
	r.x.JSON(http.StatusOK, response{Version: "2.0", ID: r.ID, Result: result})
	return nil
}

// stream writes the task so far and then what follows until the end.
func (r *request) stream(h *gateway.Handle, t *turn, historyLength *int, isEnd func() bool) error {
	s := gateway.Stream{
		Begin: r.frame(response{Result: streamResponse{Task: t.show(historyLength)}}),
		Fail:  func(p *gateway.Problem) []byte { return r.frame(response{Error: errorOf(p)}) },
	}
	if !isEnd() {
		s.Next = func(item gateway.Item) (frames []byte, err error) {
			t.add(item)
			for _, update := range t.updates {
				frames = append(frames, r.frame(response{Result: update})...)
			}
			if isEnd() {
				err = io.EOF
			}
			return frames, err
		}
	}
	return r.x.Stream(h, t.last(), s)
}

func (r *request) frame(of response) []byte {
	of.Version, of.ID = "2.0", r.ID
	data, _ := json.Marshal(of) // texts and JSON always encode
	return gateway.Frame("", "", data)
}
