package reducer

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Ledger is the usage that counts against the daily budget of a label. It is immutable, and its JSON
// is persisted. The zero value is empty.
type Ledger struct {
	Day      string                  `json:"day,omitempty"` // in UTC, like "2026-01-02"; "" before the first reservation
	Spent    event.Amount            `json:"spent,omitzero"`
	Reserved map[string]event.Amount `json:"reserved,omitempty"` // of attempts that are not settled, by key
	Lost     map[string]LostUsage    `json:"lost,omitempty"`     // of those in Reserved whose worker stopped reporting, by key
	Limit    event.Budget            `json:"limit,omitzero"`     // of the newest reservation
	Released []string                `json:"released,omitempty"` // keys that were released before they were reserved, oldest first
}

// LostUsage is what is known of an attempt whose worker stopped reporting. The worker may be alive, and
// may still use the whole reservation until the deadline of the attempt.
type LostUsage struct {
	Used  event.Amount `json:"used,omitzero"` // in its last report
	Until time.Time    `json:"until"`         // its deadline
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
	if _, ok := l.Lost[key]; ok {
		l.Lost = maps.Clone(l.Lost)
		delete(l.Lost, key)
	}
	l.Spent = l.Spent.Plus(used)
	return l
}

// Lose marks a reservation as that of a lost attempt. It counts in full until the attempt is settled, or
// until [Ledger.Expire] settles it with the known usage. Unknown keys are ignored.
func (l Ledger) Lose(key string, lost LostUsage) Ledger {
	if _, ok := l.Reserved[key]; !ok {
		return l
	}
	all := maps.Clone(l.Lost)
	if all == nil {
		all = map[string]LostUsage{}
	}
	all[key] = lost
	l.Lost = all
	return l
}

// Expire settles the lost attempts whose deadline is not after now.
func (l Ledger) Expire(now time.Time) Ledger {
	all, isCopied := l.Lost, false
	for key, lost := range all {
		if lost.Until.After(now) {
			continue
		}
		if !isCopied {
			l.Reserved, l.Lost, isCopied = maps.Clone(l.Reserved), maps.Clone(l.Lost), true
		}
		delete(l.Reserved, key)
		delete(l.Lost, key)
		l.Spent = l.Spent.Plus(lost.Used)
	}
	return l
}

// NextExpiry returns the earliest deadline of a lost attempt. It returns the zero time if there is none.
func (l Ledger) NextExpiry() (next time.Time) {
	for _, lost := range l.Lost {
		if next.IsZero() || lost.Until.Before(next) {
			next = lost.Until
		}
	}
	return next
}

// IsGrantableLater reports whether a denied reservation can be granted once all lost attempts have
// expired.
func (l Ledger) IsGrantableLater(r Reservation) bool {
	var last time.Time
	for _, lost := range l.Lost {
		if lost.Until.After(last) {
			last = lost.Until
		}
	}
	if last.IsZero() {
		return false
	}
	_, isGranted := l.Expire(last).Reserve(r)
	return isGranted
}
