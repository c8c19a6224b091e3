package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// forkRequest is where a new context continues another one.
//
//schema:rules {"oneOf":[{"required":["at"]},{"required":["before"]},{"required":["regenerate"]}],"properties":{"events":{"type":"array","items":{"$ref":"Input"}}}}
type forkRequest struct {
	// The name of the new context; absent: one is generated, like demo-2.
	Name string `json:"name,omitempty" schema:"is=ContextName"`
	// The newest event that both contexts share.
	At string `json:"at,omitempty" schema:"is=EventID"`
	// The first event that they do not share, such as a message to edit. Pending files are shared.
	Before string `json:"before,omitempty" schema:"is=EventID"`
	// An answer. The new context begins before its attempt, with the results of tools, and requests another answer.
	Regenerate string `json:"regenerate,omitempty" schema:"is=EventID"`
	// Sent to the new context, such as another wording of the message, or another model; absent: none.
	Events json.RawMessage `json:"events,omitempty"`
}

// forkContext creates a context that continues this one at an event, and sends events to it.
//
// The log is shared, not copied. A request that was running at the event ends as interrupted in the new context, and no
// tool is called again. If the context was created and then something failed, for example because the events are
// rejected, the problem has the `contextName` of the new context. A client that received no response, or such a problem,
// can repeat the request with the same `Idempotency-Key`, which continues with the same new context.
func (g *Gateway) forkContext(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	held := share{of: g.bodies}
	defer held.release()
	body, err := g.body(w, r, &held)
	if err != nil {
		return err
	}
	options, err := decodeFork(body)
	if err != nil {
		return err
	}
	options.Key = key
	created, err := g.branch(r, c, options)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, created)
	return nil
}

// branch forks a context, and sends events that the sender may send. It completes even if the client disconnects.
func (g *Gateway) branch(r *http.Request, c Context, o client.BranchOptions) (client.Branched, error) {
	identity := identityOf(r)
	if g.options.Auth != nil && !identity.Has(auth.RoleWrite) {
		return client.Branched{}, missingRole(auth.RoleWrite)
	}
	if err := g.authorize(identity, o.Events); err != nil {
		return client.Branched{}, err
	}
	o.Owner = g.ownerOfNew(identity)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	created, err := c.Branch(ctx, o)
	if err != nil && created.ContextName != "" {
		p := *problemOf(err)
		p.ContextName = created.ContextName
		return created, &p
	}
	return created, err
}

func decodeFork(body []byte) (client.BranchOptions, error) {
	var in forkRequest
	err := DecodeStrictly(body, &in)
	if err != nil {
		return client.BranchOptions{}, badRequest("the body is invalid: %s", plainJSONError(err))
	}
	options := client.BranchOptions{Name: in.Name, At: in.At, Before: in.Before, Regenerate: in.Regenerate}
	if len(in.Events) > 0 {
		options.Events, err = event.DecodeInput(in.Events)
	}
	return options, err
}

// plainJSONError describes an error of encoding/json without types of Go.
// DecodeStrictly decodes one JSON value. Unknown fields are errors.
func DecodeStrictly(data []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(value)
	if err == nil && decoder.More() {
		err = errors.New("more than one value")
	}
	return err
}

func plainJSONError(err error) string {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	kind, _, _ := strings.Cut(mismatch.Value, " ") // of a number, the digits follow
	got := map[string]string{"array": "an array", "object": "an object", "bool": "a boolean"}[kind]
	got = cmp.Or(got, "a "+kind)
	if mismatch.Field == "" {
		return "want a JSON object, got " + got
	}
	return mismatch.Field + ": want a string, got " + got
}

// readBranches reads the contexts that share a part of the log by forks, and where their logs part.
func (g *Gateway) readBranches(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	branches, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, branches)
	return nil
}
