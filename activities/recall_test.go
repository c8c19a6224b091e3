package activities_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/blobs/blobstest"
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

func TestWithAStoreASessionIsRecalledInLargeParts(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	e := event.New(event.SystemPrompt{Content: noise(2 * activities.RecallPartBytes)})
	e.ID, e.ContextName = event.FormatID("demo", 1), "demo"
	_, err := logs.Write(t.Context(), "demo", []event.Event{e})
	require.NoError(t, err)
	suite := &testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	a := activities.New(activities.Options{Temporal: unlisted{}, Archive: logs})
	env.RegisterActivity(a.Open)
	value, err := env.ExecuteActivity(a.Open, activities.OpenInput{ContextName: "demo", Recall: true})
	require.NoError(t, err)
	var opened activities.OpenResult
	require.NoError(t, value.Get(&opened))
	require.Equal(t, 1, opened.Parts, "where a history would need three")
	require.Greater(t, opened.PartBytes, 2*activities.RecallPartBytes)

	packed, err := a.Recall(t.Context(), activities.RecallInput{ContextName: "demo", PartBytes: opened.PartBytes})
	require.NoError(t, err)
	session, err := activities.Unpack(packed)
	require.NoError(t, err)
	require.Equal(t, e.Body.(event.SystemPrompt).Content, session.Reduced.Messages[0].Content)

	short, err := a.Recall(t.Context(), activities.RecallInput{ContextName: "demo"})
	require.NoError(t, err)
	require.Equal(t, packed[:activities.RecallPartBytes], short, "an earlier version named no size")
}

// noise is text that does not get smaller when it is compressed.
func noise(bytes int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, bytes)
	for i := range text {
		text[i] = ' ' + byte(random.IntN(95))
	}
	return string(text)
}

// unlisted is a Temporal without any run.
type unlisted struct{ client.Client }

func (unlisted) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
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
