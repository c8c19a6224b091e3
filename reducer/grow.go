package reducer

import (
	"slices"
	"sync"
)

// A conversation grows by appending, and every intermediate state stays valid. Copying the
// list for each message would take quadratic time, so successive states share one array:
// the newer state claims the first free slot after the older one's end. A slot without a
// role is free. If the same state is folded twice, the second fold finds the slot taken and
// copies the list.
//
// claiming makes this safe for concurrent folds of the same state.
var claiming sync.Mutex

// append appends a message.
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

// withRoom copies messages to an array with spare free slots.
func withRoom(messages []Message, spare int) []Message {
	room := make([]Message, len(messages), len(messages)+spare)
	copy(room, messages)
	return room
}

// own ensures that this call owns the messages and may modify them in place. It copies them
// at most once per call, with little spare room: folded event by event, each change copies.
func (f *fold) own() {
	if !f.ownMessages {
		f.Messages = withRoom(f.Messages, len(f.Messages)/8+8)
		f.ownMessages = true
	}
}

// insert inserts a message before index i.
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

// appendCopy appends to a copy of a short list.
func appendCopy[T any](list []T, item T) []T {
	return append(slices.Clip(list), item)
}
