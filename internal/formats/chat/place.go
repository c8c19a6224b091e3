package chat

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// placing assigns dense ids, parents, the context name and missing timestamps, and updates
// references to ids.
type placing struct {
	to    string
	at    time.Time
	count int
	// from is the context name of the file, once known.
	from string
	// counters[i] is the counter in the id of event i, or, if the id has none, that of
	// the event before it. The slice is sorted, so a binary search resolves references to
	// events that the file omits.
	counters []int
	// others maps ids without a counter to the number of their event.
	others map[string]int
}

func (p *placing) place(e event.Event) (event.Event, error) {
	if p.count == MaxEvents {
		return event.Event{}, fmt.Errorf("log exceeds %d events", MaxEvents)
	}
	if err := p.note(e); err != nil {
		return event.Event{}, err
	}
	p.count++
	e = e.MapIDs(p.follow)
	e.ID, e.ParentID = event.FormatID(p.to, p.count), ""
	_, e.ContextName = event.CutTenant(p.to)
	if p.count > 1 {
		e.ParentID = event.FormatID(p.to, p.count-1)
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = p.at
	}
	return e, e.Validate()
}

// All events must belong to one context. Their counters must increase, and ids without a counter
// must be unique.
func (p *placing) note(e event.Event) error {
	name := e.ContextName
	if name == "" && event.Counter(e.ID) > 0 {
		name = e.ID[:strings.LastIndexByte(e.ID, ':')]
	}
	if p.from == "" {
		p.from = name
	}
	if name != "" && name != p.from {
		return &event.FieldError{Tag: e.Tag(), Field: "contextName", Problem: "differs from earlier events (a file holds the log of one context)"}
	}
	last := p.newest()
	switch n := p.counterOf(e.ID); {
	case n > last:
		p.counters = append(p.counters, n)
		return nil
	case n > 0:
		return &event.FieldError{Tag: e.Tag(), Field: "id", Problem: fmt.Sprintf("out of order: event %d follows event %d", n, last)}
	case e.ID != "" && p.others[e.ID] > 0:
		return &event.FieldError{Tag: e.Tag(), Field: "id", Problem: "duplicate id"}
	case e.ID != "":
		p.others[e.ID] = p.count + 1
	}
	p.counters = append(p.counters, last)
	return nil
}

func (p *placing) newest() int {
	if len(p.counters) == 0 {
		return 0
	}
	return p.counters[len(p.counters)-1]
}

// counterOf returns the counter in an id of the file's own context, else 0.
func (p *placing) counterOf(id string) int {
	if n := event.Counter(id); n > 0 && id == event.FormatID(p.from, n) {
		return n
	}
	return 0
}

// follow maps the id of an event or a request to its id in the new log. The id of an omitted event
// maps to the event before it; "" without one.
func (p *placing) follow(id string) string {
	if n := p.others[id]; n > 0 {
		return event.FormatID(p.to, n)
	}
	if n := event.RequestNumber(id); n > 0 && id == event.FormatRequestID(p.from, n) {
		return event.FormatRequestID(p.to, n)
	}
	n := p.counterOf(id)
	if n == 0 {
		return id
	}
	if n = p.moved(n); n == 0 {
		return ""
	}
	return event.FormatID(p.to, n)
}

func (p *placing) moved(n int) int {
	switch last := p.newest(); {
	case last == 0:
		return n // no event has an id, so references count events in the file
	case n > last:
		return n - last + p.count
	}
	i := sort.SearchInts(p.counters, n)
	if p.counters[i] == n {
		return i + 1
	}
	return i
}
