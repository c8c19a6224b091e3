package stream

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// partHeader is the header of each part of a response that is too large for one message: the id of
// the response, the number of the part from 1, and the number of parts. The concatenated data of the
// parts are the response.
const partHeader = "Chronicle-Part"

const maxPartHeader = 1 << 10 // bytes

// maxResponse bounds a response in bytes: JSON escapes a byte in at most six.
const maxResponse = 6*(event.MaxAnswerBytes+event.MaxReasoningBytes) + 4<<10

func respondInParts(msg *nats.Msg, data []byte, limit int, id string) error {
	size := max(1, limit-maxPartHeader)
	total := (len(data) + size - 1) / size
	number := 0
	for part := range slices.Chunk(data, size) {
		number++
		header := nats.Header{partHeader: {fmt.Sprintf("%s %d %d", id, number, total)}}
		if err := msg.RespondMsg(&nats.Msg{Header: header, Data: part}); err != nil {
			return err
		}
	}
	return nil
}

// parts assembles a response.
type parts struct {
	id     string
	number int // of the newest part
	data   []byte
}

// add returns the data of a response once it is complete, never if a part is missing or the response
// is longer than an answer can be. A message without the header is a complete response.
func (p *parts) add(m Message) (data []byte, isComplete bool) {
	var id string
	var number, total int
	if _, err := fmt.Sscanf(m.Header.Get(partHeader), "%s %d %d", &id, &number, &total); err != nil {
		return m.Data, true
	}
	if number == 1 {
		*p = parts{id: id}
	}
	if id != p.id || number != p.number+1 || len(p.data)+len(m.Data) > maxResponse {
		*p = parts{}
		return nil, false
	}
	p.number, p.data = number, append(p.data, m.Data...)
	if number < total {
		return nil, false
	}
	data = p.data
	*p = parts{}
	return data, true
}
