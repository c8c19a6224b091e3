package openai

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// find returns the item that an item_reference names, for a context that was made for the request: its history is what the
// input says. In a conversation, it returns nil, or an error for an item that the conversation does not have.
func (a *ask) find(path, id string) (*item, error) {
	kind, _, _ := strings.Cut(id, "_")
	name, counter, ok := parseID(kind, id)
	var found *item
	if ok {
		h, err := a.x.Open(name)
		if err != nil {
			return nil, err
		}
		if found, err = a.itemOf(h, id); err != nil {
			return nil, err
		}
	}
	switch {
	case found == nil:
		p := gateway.BadRequest(path, "item %q is unknown (its response was deleted or not stored, or it is an approval: continue with previous_response_id or conversation)",
			event.Redact(id, 200))
		p.Type, p.Status, p.Title = "urn:chronicle:problem:not-found", http.StatusNotFound, "Item not found"
		return nil, p
	case a.isOwn:
		return found, nil
	}
	// A fork has the items of its origin under its own name.
	own, err := a.itemOf(a.h, formatID(kind, a.h.Name(), counter))
	if err != nil {
		return nil, err
	}
	if own != nil {
		own = new(*own)
		if own.ID = id; reflect.DeepEqual(own, found) {
			return nil, nil
		}
	}
	return nil, gateway.BadRequest(path, "item %q is not in the conversation of the request", event.Redact(id, 200))
}

// itemOf returns an item of a context; nil if it has none with this id.
func (a *ask) itemOf(h *gateway.Handle, id string) (*item, error) {
	items, isRead := a.items[h.Name()]
	if !isRead {
		var err error
		if items, err = itemsThrough(h, 0); err != nil && !errors.Is(err, client.ErrNoContext) && !errors.Is(err, client.ErrDeleted) {
			return nil, err
		}
		a.items[h.Name()] = items
	}
	if i := slices.IndexFunc(items, func(i item) bool { return i.ID == id }); i >= 0 {
		return &items[i], nil
	}
	return nil, nil
}
