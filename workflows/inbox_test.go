package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func TestTakingASignalReleasesItsPayload(t *testing.T) {
	var b inbox
	b.put(signal{name: "event", payloads: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("large")}}}})
	array := b.signals[:1]
	require.Equal(t, "event", b.take().name)
	require.Zero(t, array[0])
	require.Zero(t, b.size)
}

func TestARecordStatesAPositionOnce(t *testing.T) {
	var r run
	r.beginTaking(false)
	require.Equal(t, &wire.Taken{}, r.taken.next(), "a run without earlier input has processed all before it")
	require.Nil(t, r.taken.next())
	r.taken.now = &wire.Taken{Signals: 2}
	require.Equal(t, 2, r.taken.next().Signals)
	require.Nil(t, r.taken.next())

	r.beginTaking(true)
	require.Nil(t, r.taken.next(), "input of earlier runs comes first")
	r.taken.now = &wire.Taken{RunID: "A", Signals: 5}
	require.Equal(t, "A", r.taken.next().RunID)
	r.taken.now = &wire.Taken{}
	require.Equal(t, &wire.Taken{}, r.taken.next())
}
