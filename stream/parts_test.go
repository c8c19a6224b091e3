package stream_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/stream"
)

func TestAResponseWithAMissingPartIsDropped(t *testing.T) {
	part := func(header, data string) *nats.Msg {
		return &nats.Msg{Header: nats.Header{"Chronicle-Part": {header}}, Data: []byte(data)}
	}
	for name, messages := range map[string][]*nats.Msg{
		"none is missing":         {part("a 1 3", "who"), part("a 2 3", "l"), part("a 3 3", "e")},
		"the first":               {part("a 2 3", "x"), part("a 3 3", "x"), part("a 1 2", "who"), part("a 2 2", "le")},
		"one within":              {part("a 1 3", "x"), part("a 3 3", "x"), part("a 1 2", "who"), part("a 2 2", "le")},
		"the last":                {part("a 1 3", "x"), part("a 2 3", "x"), part("a 1 2", "who"), part("a 2 2", "le")},
		"those of another worker": {part("a 1 2", "x"), part("b 2 2", "x"), {Data: []byte("whole")}},
		"a message between":       {part("a 1 2", "who"), {}, part("a 2 2", "le")},
	} {
		t.Run(name, func(t *testing.T) {
			var p stream.Parts
			var complete []string
			for _, m := range messages {
				if data, ok := p.Add(m); ok && len(data) > 0 {
					complete = append(complete, string(data))
				}
			}
			require.Equal(t, []string{"whole"}, complete)
		})
	}
}
