package reducer

import (
	"maps"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Ledger is the usage that counts against the daily budget of a label. It is immutable, and its JSON
// is persisted. The zero value is empty.
type Ledger struct {
	Day      string                  `json:"day,omitempty"` // in UTC, like "2026-01-02"; "" before the first reservation
	Spent    event.Amount            `json:"spent,omitzero"`
	Reserved map[string]event.Amount `json:"reserved,omitempty"` // of attempts that are not settled, by key
	Limit    event.Budget            `json:"limit,omitzero"`     // of the newest reservation
	Released []string                `json:"released,omitempty"` // keys that were released before they were reserved, oldest first
}

// MaxReleased bounds [Ledger.Released] after [Ledger.Forget]. The server has at most ten updates of a
// workflow in flight, each with up to a hundred reservations. They may arrive after their release.
const MaxReleased = 1000

// Reservation asks to reserve an amount before an attempt is sent.
type Reservation struct {
	Key    string       `json:"key"` // identifies the attempt
	Wanted event.Amount `json:"wanted"`
	Limit  event.Budget `json:"limit"` // of the day
}

// On returns the ledger for a day: an empty one if its day differs. Reservations of an earlier day do
// not count on the next.
func (l Ledger) On(day string) Ledger {
	if l.Day != day {
		return Ledger{Day: day}
	}
	return l
}

// IsEmpty reports whether nothing is spent or reserved.
func (l Ledger) IsEmpty() bool { return l.Spent == event.Amount{} && len(l.Reserved) == 0 }

// Used returns the spent amount plus all reservations.
func (l Ledger) Used() event.Amount {
	used := l.Spent
	for _, amount := range l.Reserved {
		used = used.Plus(amount)
	}
	return used
}

// Reserve grants a reservation, which counts in full until it is settled, if the limit allows it in
// addition to [Ledger.Used]. A reserved key is granted again without effect; a released one is denied.
func (l Ledger) Reserve(r Reservation) (_ Ledger, isGranted bool) {
	l.Limit = r.Limit
	if _, ok := l.Reserved[r.Key]; ok {
		return l, true
	}
	if slices.Contains(l.Released, r.Key) || !r.Limit.Allows(l.Used().Plus(r.Wanted)) {
		return l, false
	}
	reserved := maps.Clone(l.Reserved)
	if reserved == nil {
		reserved = map[string]event.Amount{}
	}
	reserved[r.Key] = r.Wanted
	l.Reserved = reserved
	return l, true
}

// Release removes reservations that no attempt uses. A reservation of a key that arrives later on the
// same day is denied, unless [Ledger.Forget] has removed the key.
func (l Ledger) Release(keys ...string) Ledger {
	isReleased := map[string]bool{}
	for _, key := range l.Released {
		isReleased[key] = true
	}
	released := slices.Clip(l.Released)
	for _, key := range keys {
		if _, ok := l.Reserved[key]; ok {
			l = l.Settle(key, event.Amount{})
		} else if !isReleased[key] {
			isReleased[key] = true
			released = append(released, key)
		}
	}
	l.Released = released
	return l
}

// Forget keeps the newest [MaxReleased] released keys. Call it when all reservations that have arrived
// are decided.
func (l Ledger) Forget() Ledger {
	if n := len(l.Released) - MaxReleased; n > 0 {
		l.Released = slices.Clone(l.Released[n:])
	}
	return l
}

// Settle replaces a reservation by the actual usage. It ignores unknown keys, such as those of an
// earlier day.
func (l Ledger) Settle(key string, used event.Amount) Ledger {
	if _, ok := l.Reserved[key]; !ok {
		return l
	}
	l.Reserved = maps.Clone(l.Reserved)
	delete(l.Reserved, key)
	l.Spent = l.Spent.Plus(used)
	return l
}
