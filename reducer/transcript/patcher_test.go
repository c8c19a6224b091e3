package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

func token(i int) event.Event {
	return event.New(event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Index: i, Delta: " token", ThroughEventID: "demo:0001"})
}

func TestTheCostOfATokenIsIndependentOfTheAnswerLength(t *testing.T) {
	const tokens = 20_000
	p := transcript.NewPatcher()
	p.Apply(logged(t, 1, `{"_tag":"UserMessage","content":"Hello"}`))
	p.Apply(token(0))
	first := marshal(t, p.Apply(token(1)))
	require.Equal(t, `[{"op":"add","path":"/entries/1/content/chunks/-","value":" token"}]`, first)
	for i := 2; i < tokens; i++ {
		require.Equal(t, first, marshal(t, p.Apply(token(i))))
	}

	t.Run("a slow viewer receives the missing text in one operation", func(t *testing.T) {
		const missing = 5_000
		patch := since(t, p, p.Version()-missing)
		require.Len(t, patch, 1)
		require.Equal(t, strings.Repeat(" token", missing), patch[0].Value)
	})
	t.Run("the complete answer is sent once more", func(t *testing.T) {
		answer := event.New(event.AssistantMessage{
			Content: strings.Repeat(" token", tokens), RequestID: "demo:r0001", ThroughEventID: "demo:0001",
		})
		answer.ID = "demo:0002"
		require.Less(t, len(marshal(t, p.Apply(answer))), tokens*len(" token")+200)
	})
}

func TestAPatchChangesEachEntryOnce(t *testing.T) {
	p := transcript.NewPatcher()
	p.Apply(logged(t, 1, `{"_tag":"ToolCall","toolCallId":"c","toolName":"x"}`))
	p.Apply(logged(t, 2, `{"_tag":"UserMessage","content":"Hello"}`))
	for n := 3; n < 1000; n++ {
		p.Apply(logged(t, n, fmt.Sprintf(`{"_tag":"ToolResult","toolCallId":"c","value":%d}`, n)))
	}
	patch := since(t, p, 2)
	require.Len(t, patch, 1)
	require.Contains(t, marshal(t, patch), `"result":999`)
	require.Len(t, since(t, p, 1), 2)
}

func TestAnUnknownVersionIsRejected(t *testing.T) {
	p := transcript.NewPatcher()
	p.Apply(logged(t, 1, `{"_tag":"UserMessage","content":"Hello"}`))
	for _, version := range []int{-1, 2} {
		_, ok := p.Since(version)
		require.False(t, ok, version)
	}
	patch, ok := p.Since(1)
	require.True(t, ok)
	require.Empty(t, patch)
}

func TestAnEmptyDocumentHasAnEmptyList(t *testing.T) {
	require.Equal(t, `{"entries":[]}`, marshal(t, transcript.NewPatcher().Document()))
}

func TestATimeOutsideTheJSONRangeIsIgnored(t *testing.T) {
	for _, at := range []string{"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"} {
		p := transcript.NewPatcher()
		p.Apply(logged(t, 1, `{"_tag":"UserMessage","content":"Hello","sourceTimestamp":"`+at+`"}`))
		data, err := json.Marshal(p.Document())
		require.NoError(t, err, at)
		require.Contains(t, string(data), "Hello")
	}
}
