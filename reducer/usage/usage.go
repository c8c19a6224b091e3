// Package usage sums the usage of the attempts in logs. It is a pure fold without clock or I/O.
package usage

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// By is how a [Table] groups usage into rows.
type By string

// Groupings of a [Table].
const (
	ByContext By = "context"
	ByModel   By = "model"
	ByDay     By = "day"
)

// Key identifies a row. Only the fields of its [By] are set.
type Key struct {
	ContextName string `json:"contextName,omitempty"`
	ProviderID  string `json:"providerId,omitempty"`
	Model       string `json:"model,omitempty"`
	Day         string `json:"day,omitempty"` // of the end of the attempt in UTC, like "2026-01-02"
}

// Row is the sum over the attempts with a key.
type Row struct {
	Key
	reducer.Usage
}

// Table sums the usage of attempts. A running attempt counts once it ends.
type Table struct {
	by      By
	sums    map[Key]reducer.Usage
	log     map[Key]reducer.Usage // sums of the log of context, not yet in sums
	context string
	open    *event.LLMRequestStarted
}

// New returns an empty table.
func New(by By) *Table {
	return &Table{by: by, sums: map[Key]reducer.Usage{}, log: map[Key]reducer.Usage{}}
}

// Add folds an event. The events of a log come in order, one log after the other. The usage of a
// fork starts at the fork: earlier usage belongs to the context that it was forked from.
func (t *Table) Add(e event.Event) {
	if e.ContextName != t.context {
		t.endLog()
		t.context = e.ContextName
	}
	switch body := e.Body.(type) {
	case event.SessionStarted:
		if body.ForkedFrom != "" {
			clear(t.log)
			t.open = nil
		}
	case event.LLMRequestStarted:
		t.open = &body
	case event.LLMAttemptEnded:
		t.end(e, body.RequestID, body.Usage)
	case event.LLMRequestFellBack:
		t.end(e, body.RequestID, body.Usage)
	case event.LLMRequestCompleted:
		t.end(e, body.RequestID, body.Usage)
	case event.LLMRequestInterrupted:
		t.end(e, body.RequestID, body.Usage)
	case event.LLMRequestFailed:
		t.end(e, body.RequestID, body.Usage)
	}
}

func (t *Table) end(e event.Event, requestID string, usage event.Usage) {
	if t.open == nil || t.open.RequestID != requestID {
		return
	}
	key := t.key(e)
	t.log[key] = t.log[key].Add(usage)
	t.open = nil
}

func (t *Table) key(e event.Event) Key {
	switch t.by {
	case ByModel:
		return Key{ProviderID: t.open.ProviderID, Model: t.open.Model}
	case ByDay:
		return Key{Day: e.Timestamp.UTC().Format(time.DateOnly)}
	default:
		return Key{ContextName: e.ContextName}
	}
}

func (t *Table) endLog() {
	for key, sum := range t.log {
		t.sums[key] = t.sums[key].Plus(sum)
	}
	clear(t.log)
	t.open = nil
}

// Rows returns the sums, sorted by their keys.
func (t *Table) Rows() []Row {
	sums := maps.Clone(t.sums)
	for key, sum := range t.log {
		sums[key] = sums[key].Plus(sum)
	}
	var rows []Row
	for key, sum := range sums {
		rows = append(rows, Row{key, sum})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.ContextName, b.ContextName), cmp.Compare(a.Day, b.Day),
			cmp.Compare(a.ProviderID, b.ProviderID), cmp.Compare(a.Model, b.Model))
	})
	return rows
}

// Total returns the sum over all rows.
func (t *Table) Total() (total reducer.Usage) {
	for _, row := range t.Rows() {
		total = total.Plus(row.Usage)
	}
	return total
}
