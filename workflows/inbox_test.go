package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
)

func TestTakingASignalReleasesItsPayload(t *testing.T) {
	var b inbox
	b.put(signal{name: "event", payloads: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("large")}}}})
	array := b.signals[:1]
	require.Equal(t, "event", b.take().name)
	require.Zero(t, array[0])
	require.Zero(t, b.size)
}
