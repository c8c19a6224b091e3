package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

type conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  map[string]string `json:"metadata"`
}

// conversationBody is the body of requests about conversations.
type conversationBody struct {
	Items    json.RawMessage   `json:"items"`
	Metadata map[string]string `json:"metadata"`
}

// ofConversation serves requests about a conversation, which need not exist.
func ofConversation(serve func(x *gateway.Exchange, h *gateway.Handle) error) func(x *gateway.Exchange) error {
	return func(x *gateway.Exchange) error {
		h, err := x.Open(x.Request.PathValue("name"))
		if err != nil {
			return err
		}
		return serve(x, h)
	}
}

func createConversation(x *gateway.Exchange) error {
	body, err := readBody(x)
	if err != nil {
		return err
	}
	name, err := newName(x, "conv-")
	if err != nil {
		return err
	}
	h, err := x.Open(name)
	if err != nil {
		return err
	}
	events := []event.Event{labels(body.Metadata)}
	if len(body.Items) > 0 && string(body.Items) != "[]" && string(body.Items) != "null" {
		in, err := readItems(body.Items)
		if err != nil {
			return err
		}
		events = append(events, in...)
	}
	if _, err := put(h, events...); err != nil {
		if key, _ := x.IdempotencyKey(); key == "" { // else an earlier request has made it
			discardRejected(x, h, err)
		}
		return named(err, "items", nil)
	}
	return getConversation(x, h)
}

func readBody(x *gateway.Exchange) (body conversationBody, err error) {
	data, err := x.Body()
	if err == nil {
		err = decode("", data, &body)
	}
	return body, err
}

// labels returns the event that makes metadata the labels of the context.
func labels(metadata map[string]string) event.Event {
	if metadata == nil {
		metadata = map[string]string{}
	}
	return event.New(event.SetDetails{Labels: metadata})
}

func updateConversation(x *gateway.Exchange, h *gateway.Handle) error {
	body, err := readBody(x)
	if err != nil {
		return err
	}
	now, err := h.Snapshot()
	switch {
	case err != nil:
		return err
	case now.Last == "":
		return fmt.Errorf("context %s: %w", h.Name(), client.ErrNoContext)
	}
	if _, err := put(h, labels(body.Metadata)); err != nil {
		return named(err, "metadata", nil)
	}
	return getConversation(x, h)
}

// put sends events that request no answer, and returns the counter of the newest one.
func put(h *gateway.Handle, events ...event.Event) (newest int, err error) {
	sent, err := h.Send(events...)
	if err != nil {
		return 0, err
	}
	return recorded(h, sent)
}

// readItems reads items that request no answer.
func readItems(raw json.RawMessage) ([]event.Event, error) {
	in, err := readInput("items", raw, func(path, _ string) (*item, error) {
		return nil, unsupported(path, "references to items are supported as input of a response only")
	})
	if err != nil {
		return nil, err
	}
	var events []event.Event
	if system := in.instructions(nil); system != nil {
		events = append(events, event.New(event.SystemPrompt{Content: *system}))
	}
	for _, e := range in.events {
		switch body := e.Body.(type) {
		case event.UserMessage:
			body.TriggersTurn = new(false)
			e.Body = body
		case event.ApprovalDecided:
			return nil, unsupported("items", "approvals are supported as input of a response only")
		}
		events = append(events, e)
	}
	return events, nil
}

func getConversation(x *gateway.Exchange, h *gateway.Handle) error {
	var c conversation
	for e, err := range h.Scan("") {
		if err != nil {
			return err
		}
		if c.ID == "" {
			c = conversation{ID: h.Name(), Object: "conversation", CreatedAt: e.Timestamp.Unix(), Metadata: map[string]string{}}
		}
		if body, ok := e.Body.(event.SetDetails); ok && body.Labels != nil {
			c.Metadata = body.Labels
		}
	}
	x.JSON(http.StatusOK, c)
	return nil
}

func deleteConversation(x *gateway.Exchange, h *gateway.Handle) error {
	if err := h.Delete(); err != nil {
		return err
	}
	x.JSON(http.StatusOK, map[string]any{"id": h.Name(), "object": "conversation.deleted", "deleted": true})
	return nil
}

func listItems(x *gateway.Exchange, h *gateway.Handle) error { return writeItems(x, h, 0) }

func getItem(x *gateway.Exchange, h *gateway.Handle) error {
	all, err := itemsThrough(h, 0)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(i item) bool { return i.ID == x.Request.PathValue("id") }); i >= 0 {
		x.JSON(http.StatusOK, all[i])
		return nil
	}
	return &gateway.Problem{Type: "urn:chronicle:problem:not-found", Status: http.StatusNotFound, Title: "Item not found", Field: "item_id"}
}

func deleteItem(*gateway.Exchange, *gateway.Handle) error {
	return unsupported("item_id", "items cannot be deleted: the log of a context is append-only (continue an earlier response, or delete the conversation)")
}

func createItems(x *gateway.Exchange, h *gateway.Handle) error {
	body, err := readBody(x)
	if err != nil {
		return err
	}
	events, err := readItems(body.Items)
	if err != nil {
		return err
	}
	last, err := put(h, events...)
	if err != nil {
		return named(err, "items", nil)
	}
	all, err := itemsThrough(h, last)
	if err != nil {
		return err
	}
	isOlder := func(i item) bool { return i.counter() <= last-len(events) }
	x.JSON(http.StatusOK, pageOf(slices.DeleteFunc(all, isOlder), len(all)))
	return nil
}
