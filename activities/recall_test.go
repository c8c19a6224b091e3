package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestASessionIsUnpackedAsItWasPacked(t *testing.T) {
	e := event.New(event.UserMessage{Content: `<b>Tom & "Jerry"</b>`})
	e.ID = event.FormatID("demo", 1)
	session := reducer.Load("demo", reducer.Reduce, e)
	packed, err := activities.Pack(session)
	require.NoError(t, err)
	again, err := activities.Pack(session)
	require.NoError(t, err)
	require.Equal(t, packed, again, "the parts of several attempts fit together")
	unpacked, err := activities.Unpack(packed)
	require.NoError(t, err)
	require.Equal(t, session, unpacked)

	_, err = activities.Unpack(packed[:len(packed)-1])
	require.ErrorContains(t, err, "unpack a session of")
}

func TestPartsOfTwoPackingsAreNotMixed(t *testing.T) {
	a := activities.New(activities.Options{})
	packed := []byte("0123456789")
	activities.Keep(a, "demo", "A", packed)
	in := activities.RecallInput{ContextName: "demo", PreviousRunID: "A", PartBytes: 4, PackedSum: activities.SumOf(packed)}
	var whole []byte
	for in.Part = range 3 {
		part, err := a.Recall(t.Context(), in)
		require.NoError(t, err)
		whole = append(whole, part...)
	}
	require.Equal(t, packed, whole)

	in.PackedSum = ""
	_, err := a.Recall(t.Context(), in)
	require.NoError(t, err, "an earlier version gave no sum")

	in.PackedSum = activities.SumOf([]byte("another packing"))
	_, err = a.Recall(t.Context(), in)
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, activities.ErrorRepacked, failed.Type())
	require.True(t, failed.NonRetryable(), "to try again changes nothing")
}
