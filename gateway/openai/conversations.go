package openai

import (
	"encoding/json"
	"fmt"
	"net/http"

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
	if _, err := h.Send(events...); err != nil {
		return err
	}
	return writeConversation(x, h)
}

func readBody(x *gateway.Exchange) (body conversationBody, err error) {
	data, err := x.Body()
	if err == nil {
		err = decode(data, &body)
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

func updateConversation(x *gateway.Exchange) error {
	h, err := open(x)
	if err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	now, err := h.Snapshot()
	switch {
	case err != nil:
		return err
	case now.Last == "":
		return noContext(h)
	}
	sent, err := h.Send(labels(body.Metadata))
	if err == nil {
		_, err = (&ask{x: x, h: h}).recorded(sent)
	}
	if err != nil {
		return err
	}
	return writeConversation(x, h)
}

// readItems reads items that request no answer.
func readItems(raw json.RawMessage) ([]event.Event, error) {
	in, err := readInput(raw, func(string) (string, error) {
		return "", unsupported("items", "approvals are supported as input of a response only")
	})
	if err != nil {
		return nil, err
	}
	var events []event.Event
	if system := in.instructions(nil); system != nil {
		events = append(events, event.New(event.SystemPrompt{Content: *system}))
	}
	for _, e := range in.events {
		if body, ok := e.Body.(event.UserMessage); ok {
			body.TriggersTurn = new(false)
			e.Body = body
		}
		events = append(events, e)
	}
	return events, nil
}

func writeConversation(x *gateway.Exchange, h *gateway.Handle) error {
	var c conversation
	for e, err := range h.Events("") {
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
	if c.ID == "" {
		return noContext(h)
	}
	x.JSON(http.StatusOK, c)
	return nil
}

func noContext(h *gateway.Handle) error {
	return fmt.Errorf("context %s: %w", h.Name(), client.ErrNoContext)
}

func open(x *gateway.Exchange) (*gateway.Handle, error) { return x.Open(x.Request.PathValue("name")) }

func getConversation(x *gateway.Exchange) error {
	h, err := open(x)
	if err != nil {
		return err
	}
	return writeConversation(x, h)
}

func deleteConversation(x *gateway.Exchange) error {
	h, err := open(x)
	if err == nil {
		err = h.Delete()
	}
	if err != nil {
		return err
	}
	x.JSON(http.StatusOK, map[string]any{"id": h.Name(), "object": "conversation.deleted", "deleted": true})
	return nil
}

func listItems(x *gateway.Exchange) error {
	h, err := open(x)
	if err != nil {
		return err
	}
	return writeItems(x, h, 0)
}

func getItem(x *gateway.Exchange) error {
	h, err := open(x)
	if err != nil {
		return err
	}
	all, err := itemsThrough(h, 0)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.ID == x.Request.PathValue("id") {
			x.JSON(http.StatusOK, i)
			return nil
		}
	}
	return &gateway.Problem{Type: "urn:chronicle:problem:not-found", Status: http.StatusNotFound, Title: "Item not found", Field: "item_id"}
}

func createItems(x *gateway.Exchange) error {
	h, err := open(x)
	if err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	events, err := readItems(body.Items)
	if err != nil {
		return err
	}
	sent, err := h.Send(events...)
	if err != nil {
		return err
	}
	a := ask{x: x, h: h}
	last, err := a.recorded(sent)
	if err != nil {
		return err
	}
	all, err := itemsThrough(h, last)
	if err != nil {
		return err
	}
	first := last - len(events) + 1
	page := list[item]{Object: "list", Data: []item{}}
	for _, i := range all {
		if _, n, _ := parseID(prefixOf(i.ID), i.ID); n >= first {
			page.Data = append(page.Data, i)
		}
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = page.Data[0].ID, page.Data[n-1].ID
	}
	x.JSON(http.StatusOK, page)
	return nil
}
