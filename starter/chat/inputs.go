package chat

import (
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// envelope is more than an input takes for each event beside its JSON: the id
// that it is given, and a comma.
const envelope = 100

// Inputs cuts events into as few inputs as can be sent, in order: mostly one,
// more when attachments are too long for one. Attachments that come alone wait
// for the message behind them.
func Inputs(events []event.Event) [][]event.Event {
	var inputs [][]event.Event
	begin, size := 0, 0
	for i, e := range events {
		// What has no JSON is refused by who sends it.
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
