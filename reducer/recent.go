package reducer

import (
	"hash/fnv"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxRecent is the number of events kept for deduplication. It covers the largest input, so that
// repeating an input returns all ids.
const MaxRecent = event.MaxInputEvents

// Sent is a recorded event with a ClientEventID.
type Sent struct {
	ClientEventID string `json:"clientEventId"`
	Counter       int    `json:"counter"`
	// Hash is that of the body of the event; 0: unknown.
	Hash uint32 `json:"hash,omitempty"`

	freeCount int32 // see shared; 0 in a list
}

func (s *Sent) free() *int32 { return &s.freeCount }

// Find returns the id of the event with a ClientEventID, among the newest [MaxRecent].
func (s Session) Find(clientEventID string) (id string, ok bool) {
	sent, ok := s.find(clientEventID)
	if !ok {
		return "", false
	}
	return event.FormatID(s.ContextName, sent.Counter), true
}

func (s Session) find(clientEventID string) (sent Sent, ok bool) {
	for _, sent := range slices.Backward(s.Recent) {
		if sent.ClientEventID == clientEventID {
			return sent, true
		}
	}
	return Sent{}, false
}

// reusesID reports whether a ClientEventID of the events belongs to a different event.
func (d *decision) reusesID(events []event.Event) bool {
	for i, e := range events {
		isSame := func(other event.Event) bool { return e.ClientEventID != "" && other.ClientEventID == e.ClientEventID }
		known, isKnown := d.find(e.ClientEventID)
		if at := slices.IndexFunc(events[:i], isSame); at >= 0 && !isKnown {
			known, isKnown = Sent{Hash: hashOf(events[at])}, true
		}
		if isKnown && known.Hash != 0 && known.Hash != hashOf(e) {
			return true
		}
	}
	return false
}

// isKeyed reports whether an event is remembered by its ClientEventID. That of a rejection belongs to the input.
func isKeyed(e event.Event) bool { return e.ClientEventID != "" && e.Tag() != event.TagInputRejected }

// hash sets the hash of the event that was remembered last, if it is e.
func (d *decision) hash(e event.Event) {
	if isKeyed(e) {
		d.Recent[len(d.Recent)-1].Hash = hashOf(e)
	}
}

// hashOf returns the hash of the body of an event: its envelope differs when it is recorded, and metadata may. Sessions
// contain hashes, so the JSON of a body must not change; see TestHashesOfBodiesAreStable.
func hashOf(e event.Event) uint32 {
	data, err := event.Event{Body: e.Body}.MarshalJSON()
	if err != nil {
		return 0
	}
	sum := fnv.New32a()
	_, _ = sum.Write(data)
	return sum.Sum32()
}

func (d *decision) deduplicate(events []event.Event) []event.Event {
	var fresh []event.Event
	for i, e := range events {
		isSame := func(other event.Event) bool { return other.ClientEventID == e.ClientEventID }
		_, isKnown := d.Find(e.ClientEventID)
		if e.ClientEventID == "" || !isKnown && !slices.ContainsFunc(events[:i], isSame) {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// reusesKey reports whether another input had the idempotency key of an id.
func (d *decision) reusesKey(clientEventID string) bool {
	return slices.ContainsFunc(d.Recent, func(sent Sent) bool { return event.ReusesKey(sent.ClientEventID, clientEventID) })
}

func (d *decision) remember(sent Sent) {
	recent := d.Recent[max(0, len(d.Recent)-MaxRecent+1):]
	d.Recent, _ = shared[Sent, *Sent](recent).append(sent, len(recent)+7)
}
