package chat

import (
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// envelope is an upper bound of the bytes that an input needs per event besides its JSON: the
// assigned id and a comma.
const envelope = 100

// Inputs splits events into as few inputs as possible, in order. If the attachments and the message together
// exceed the size limit of an input, the first attachments are in earlier inputs than the message.
func Inputs(events []event.Event) [][]event.Event {
	var inputs [][]event.Event
	begin, size := 0, 0
	for i, e := range events {
		// Send reports events that cannot be encoded.
		data, _ := e.MarshalJSON()
		more := len(data) + envelope
		if i > begin && size+more > wire.MaxInputBytes {
			inputs = append(inputs, events[begin:i:i])
			begin, size = i, 0
		}
		size += more
	}
	return append(inputs, events[begin:])
}
