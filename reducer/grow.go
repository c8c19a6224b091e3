package reducer

import (
	"slices"
	"sync"
)

// A conversation grows at its end, one message at a time, and every state on
// the way stays valid. Copying the list for each message would make a long
// context quadratic, so states that follow from one another share one array:
// the newer one claims the first slot behind the older one's end. A slot
// without a role is free. Whoever comes second, because the same state is
// folded again in another direction, finds the slot taken and copies.
//
// claiming makes that safe when two goroutines fold from the same state.
var claiming sync.Mutex

// append adds a message at the end.
func (f *fold) append(m Message) {
	n := len(f.Messages)
	if n < cap(f.Messages) && claim(&f.Messages[:n+1][n], m, func(m Message) bool { return m.Role == "" }) {
		f.Messages = f.Messages[:n+1]
		return
	}
	f.Messages = withRoom(f.Messages, n+8)[:n+1]
	f.Messages[n] = m
	f.ownMessages = true
}

func claim[T any](slot *T, item T, isFree func(T) bool) bool {
	claiming.Lock()
	defer claiming.Unlock()
	if !isFree(*slot) {
		return false
	}
	*slot = item
	return true
}

// withRoom copies messages into an array with some more slots, which are free.
func withRoom(messages []Message, spare int) []Message {
	room := make([]Message, len(messages), len(messages)+spare)
	copy(room, messages)
	return room
}

// own makes sure that the messages belong to this call alone, so that they may
// be changed in place. It copies them once in a call, with little room to spare:
// event by event, that is once for each change.
func (f *fold) own() {
	if !f.ownMessages {
		f.Messages = withRoom(f.Messages, len(f.Messages)/8+8)
		f.ownMessages = true
	}
}

// insert puts a message before index i.
func (f *fold) insert(i int, m Message) {
	if i == len(f.Messages) {
		f.append(m)
		return
	}
	f.own()
	f.append(m)
	copy(f.Messages[i+1:], f.Messages[i:])
	f.Messages[i] = m
}

// appendCopy appends to a copy; for the short lists inside of messages.
func appendCopy[T any](list []T, item T) []T {
	return append(slices.Clip(list), item)
}
