package stream_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/stream"
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

func TestForgedPartsHoldNoMoreThanAnAnswer(t *testing.T) {
	var p stream.Parts
	part := make([]byte, 900<<10)
	for number := range 500 {
		header := nats.Header{"Chronicle-Part": {fmt.Sprintf("forged %d 1000000", number+1)}}
		_, ok := p.Add(&nats.Msg{Header: header, Data: part})
		require.False(t, ok)
		require.LessOrEqual(t, p.Held(), 12<<20, "after part %d", number+1)
	}
	data, ok := p.Add(&nats.Msg{Header: nats.Header{"Chronicle-Part": {"next 1 1"}}, Data: []byte("next")})
	require.True(t, ok)
	require.Equal(t, "next", string(data))
}
