package reducer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func file(mediaType string) event.FileAttachment {
	return event.FileAttachment{Source: event.Source{Type: event.SourceFile, Path: "/file"}, MediaType: mediaType}
}

// refusedIn returns the contents that a model does not receive, by the ids of the messages.
func refusedIn(c reducer.ReducedContext, providerID, model string) map[string][]event.Content {
	out := map[string][]event.Content{}
	for _, m := range c.ForModel(c.Messages, providerID, model) {
		for _, content := range event.Content("").Values() {
			if _, ok := m.Refused[content]; ok {
				out[m.EventID] = append(out[m.EventID], content)
			}
		}
	}
	return out
}

func TestContentIsReplacedOnlyForTheModelThatRefusesIt(t *testing.T) {
	state := &event.ProviderState{ProviderID: "p", Model: "m", BaseURL: "https://p.example/v1", Data: []byte(`{}`)}
	conversation := []event.Body{
		file("image/png"), file("application/pdf"), event.UserMessage{Content: "One"}, // demo:0003
		event.AssistantMessage{Content: "Hm", ProviderState: state}, // demo:0004
		event.ToolCall{ToolCallID: "c1", ToolName: "run"},           // of demo:0004
		event.ToolResult{ToolCallID: "c1", Value: []byte(`1`)},
		file("image/png"), event.UserMessage{Content: "Two"}, // demo:0008
	}
	refused := func(content event.Content, from, through string) event.ContentRefused {
		return event.ContentRefused{RequestID: "demo:r0001", ProviderID: "p", Model: "m", Content: content, FromEventID: from, ThroughEventID: through, Error: "no"}
	}
	for _, c := range []struct {
		name    string
		refused []event.Body
		want    map[string][]event.Content
	}{
		{"nothing", nil, map[string][]event.Content{}},
		{"the images of a message", []event.Body{refused("images", "demo:0008", "demo:0008")}, map[string][]event.Content{"demo:0008": {"images"}}},
		{"all images", []event.Body{refused("images", "", "demo:0008")}, map[string][]event.Content{"demo:0003": {"images"}, "demo:0008": {"images"}}},
		{"images and files", []event.Body{refused("images", "", "demo:0003"), refused("pdfs", "", "demo:0008")}, map[string][]event.Content{"demo:0003": {"images", "pdfs"}}},
		{"content that is not there", []event.Body{refused("audio", "", "demo:0008")}, map[string][]event.Content{}},
		{"calls", []event.Body{refused("calls", "", "demo:0004")}, map[string][]event.Content{"demo:0004": {"calls"}}},
		{"state", []event.Body{refused("state", "", "demo:0004")}, map[string][]event.Content{"demo:0004": {"state"}}},
		{"withdrawn by the failure", []event.Body{refused("images", "", "demo:0008"), event.LLMRequestFailed{RequestID: "demo:r0001"}}, map[string][]event.Content{}},
		{"withdrawn by the fallback", []event.Body{refused("images", "", "demo:0008"), event.LLMRequestFellBack{RequestID: "demo:r0001"}}, map[string][]event.Content{}},
		{"withdrawn by setting the provider", []event.Body{refused("images", "", "demo:0008"), event.SetProviderConfig{ProviderID: "p", Model: "m"}}, map[string][]event.Content{}},
		{"not withdrawn by another failure", []event.Body{refused("images", "", "demo:0003"), event.LLMRequestFailed{RequestID: "demo:r0002"}}, map[string][]event.Content{"demo:0003": {"images"}}},
		{"not withdrawn by another model", []event.Body{refused("images", "", "demo:0003"), event.SetProviderConfig{ProviderID: "p", Model: "other"}}, map[string][]event.Content{"demo:0003": {"images"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := reduce(append(conversation, c.refused...)...)
			require.Equal(t, c.want, refusedIn(state, "p", "m"))
			require.Empty(t, refusedIn(state, "p", "other"))
			require.Empty(t, refusedIn(state, "other", "m"))
			for _, m := range state.Messages {
				require.Nil(t, m.Refused, "ForModel modified the state")
			}
		})
	}
	sent := reduce(append(conversation, refused("state", "", "demo:0004"))...)
	require.NotNil(t, sent.Messages[1].ProviderState)
	require.Nil(t, sent.ForModel(sent.Messages, "p", "m")[1].ProviderState)
}

func TestARefusedToolKeepsItsSchemaForOthers(t *testing.T) {
	refused := func(content event.Content, tool string) event.ContentRefused {
		return event.ContentRefused{RequestID: "demo:r0001", ProviderID: "p", Model: "m", Content: content, Tool: tool}
	}
	type tool struct{ isOffered, hasSchema bool }
	for _, c := range []struct {
		name      string
		refused   []event.Body
		run, read tool
	}{
		{"nothing", nil, tool{true, true}, tool{true, true}},
		{"a schema", []event.Body{refused("schemas", "run")}, tool{true, false}, tool{true, true}},
		{"a tool", []event.Body{refused("tools", "run")}, tool{false, true}, tool{true, true}},
		{"all schemas", []event.Body{refused("schemas", "run"), refused("schemas", "")}, tool{true, false}, tool{true, false}},
		{"all tools", []event.Body{refused("tools", "")}, tool{false, true}, tool{false, true}},
		{"other tools are set", []event.Body{refused("tools", ""), event.SetTools{}}, tool{true, true}, tool{true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := reduce(c.refused...)
			for name, want := range map[string]tool{"run": c.run, "read": c.read} {
				isOffered, hasSchema := state.ToolFor(name, "p", "m")
				require.Equal(t, want, tool{isOffered, hasSchema}, name)
				isOffered, hasSchema = state.ToolFor(name, "p", "other")
				require.True(t, isOffered && hasSchema, name)
			}
		})
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	var bodies []event.Body
	for n := range 1000 {
		id := event.FormatID("demo", 1+n)
		bodies = append(bodies, event.ContentRefused{
			RequestID: "demo:r0001", ProviderID: "p", Model: "m", Content: event.ContentImages, FromEventID: id, ThroughEventID: id,
		})
	}
	of := reduce(bodies...).Refused
	require.LessOrEqual(t, len(of), 10)
	require.Empty(t, of[0].FromEventID, "the oldest are joined")
	require.Equal(t, "demo:1000", of[len(of)-1].ThroughEventID)

	for n := range bodies {
		body := bodies[n].(event.ContentRefused)
		body.Model = fmt.Sprint("m", n)
		bodies[n] = body
	}
	require.Len(t, reduce(bodies...).Refused, 64)
}

func TestARequestIsRefusedABoundedNumberOfTimes(t *testing.T) {
	s := reducer.NewSession("demo")
	s, _ = reducer.Step(s, received(event.UserMessage{Content: "Hello"}))
	attempts := 0
	for ; s.Request != nil; attempts++ {
		require.Less(t, attempts, 100)
		s, _ = reducer.Step(s, reducer.AttemptEnded{
			RequestID: s.Request.ID, Attempt: s.Request.Attempt, ProviderID: "p", Model: fmt.Sprint("m", attempts), Outcome: reducer.Failed,
			Suspects: []reducer.Suspect{{Content: event.ContentTools, Tool: fmt.Sprint("tool", attempts)}},
		})
	}
	require.Equal(t, reducer.MaxRefusals+1, attempts)
}
