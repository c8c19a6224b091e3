package exchange

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// placing gives the events of a file their place in a log: dense ids and a
// parent, the name of the log, and a time where there is none. Ids within them
// are followed to where their events end up.
type placing struct {
	to string
	at time.Time
	// count is how many events have their place.
	count int
	// from is the context of the file, as soon as an event has said so. Its ids
	// are in order, so that those of events that were left out still have a place:
	// counters has, for each event, the counter of its id, or that of the event
	// before when it has no such id.
	from     string
	counters []int
	// others are the events with ids of another make.
	others map[string]int
}

func (p *placing) place(e event.Event) (event.Event, error) {
	if p.count == MaxEvents {
		return event.Event{}, fmt.Errorf("more than %d events; no more are read of one log", MaxEvents)
	}
	if err := p.note(e); err != nil {
		return event.Event{}, err
	}
	p.count++
	e = e.MapIDs(p.follow)
	e.ID, e.ParentID, e.ContextName = event.FormatID(p.to, p.count), "", p.to
	if p.count > 1 {
		e.ParentID = event.FormatID(p.to, p.count-1)
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = p.at
	}
	return e, e.Validate()
}

// note remembers the id of an event, which must make a log of the file: of one
// context, and no event twice.
func (p *placing) note(e event.Event) error {
	name := e.ContextName
	if name == "" && event.Counter(e.ID) > 0 {
		name = e.ID[:strings.LastIndexByte(e.ID, ':')]
	}
	if p.from == "" {
		p.from = name
	}
	if name != "" && name != p.from {
		return &event.FieldError{Tag: e.Tag(), Field: "contextName", Problem: "is another one than before; a file holds the log of one context"}
	}
	last := p.newest()
	switch n := p.counterOf(e.ID); {
	case n > last:
		p.counters = append(p.counters, n)
		return nil
	case n > 0:
		return &event.FieldError{Tag: e.Tag(), Field: "id", Problem: fmt.Sprintf("event %d of the log stands behind event %d", n, last)}
	case e.ID != "" && p.others[e.ID] > 0:
		return &event.FieldError{Tag: e.Tag(), Field: "id", Problem: "is that of an event before"}
	case e.ID != "":
		p.others[e.ID] = p.count + 1
	}
	p.counters = append(p.counters, last)
	return nil
}

// newest is the highest counter so far.
func (p *placing) newest() int {
	if len(p.counters) == 0 {
		return 0
	}
	return p.counters[len(p.counters)-1]
}

// counterOf is the counter in an id of the file's own context; else 0.
func (p *placing) counterOf(id string) int {
	if n := event.Counter(id); n > 0 && id == event.FormatID(p.from, n) {
		return n
	}
	return 0
}

// follow is the id under which an event or a request is known in the log. Of an
// event that is not in the file it is the id of the one before; empty when there
// is none.
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

// moved is the counter in the log for one in the file.
func (p *placing) moved(n int) int {
	switch last := p.newest(); {
	case last == 0:
		return n // no event has an id, so it can only be a place in the file
	case n > last:
		return n - last + p.count
	}
	i := sort.SearchInts(p.counters, n)
	if p.counters[i] == n {
		return i + 1
	}
	return i
}
