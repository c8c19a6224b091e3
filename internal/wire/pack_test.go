package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestUnpackIsTheInverseOfPack(t *testing.T) {
	e := event.New(event.UserMessage{Content: `<b>Tom & "Jerry"</b>`})
	e.ID = event.FormatID("demo", 1)
	session := reducer.Load("demo", reducer.Reduce, e)
	packed, err := wire.Pack(session)
	require.NoError(t, err)
	again, err := wire.Pack(session)
	require.NoError(t, err)
	require.Equal(t, packed, again, "the same session gives the same bytes")
	unpacked, err := wire.Unpack(packed)
	require.NoError(t, err)
	require.Equal(t, session, unpacked)

	_, err = wire.Unpack(packed[:len(packed)-1])
	require.ErrorContains(t, err, "unpack a session of")
}
