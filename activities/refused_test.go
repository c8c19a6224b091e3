package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestAFailureNamesWhatTheProviderMayHaveRefused(t *testing.T) {
	w := newEnvironment(t, newSession(
		event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte("png")}, MediaType: "image/png"}, event.UserMessage{Content: "Look"},
	), llmtest.Error(400, "invalid_request_error", "the image is damaged"))
	failed := w.failure()
	require.False(t, failed.Retryable)
	require.Equal(t, []reducer.Suspect{{Content: event.ContentImages}}, failed.Suspects)
}

func TestARequestLacksWhatItsModelRefuses(t *testing.T) {
	refused := func(content event.Content, tool string) event.ContentRefused {
		return event.ContentRefused{RequestID: "demo:r0001", ProviderID: "openai", Model: "scripted", Content: content, Tool: tool, Error: "no"}
	}
	weather := event.SetTools{Tools: event.ToolList{{Pattern: "weather"}, ask}}
	chosen := event.SetRequestSettings{ToolChoice: &event.ToolChoice{Name: "weather"}}
	other := refused(event.ContentTools, "weather")
	other.Model = "another"
	for name, test := range map[string]struct {
		refused     []event.Body
		tools       []string
		hasSchema   bool
		description string
		isChosen    bool
	}{
		"nothing":             {nil, []string{"weather", "files_read", "ask"}, true, "The weather", true},
		"a tool":              {[]event.Body{refused(event.ContentTools, "weather")}, []string{"files_read", "ask"}, false, "", false},
		"all tools":           {[]event.Body{refused(event.ContentTools, "")}, nil, false, "", true},
		"the schema":          {[]event.Body{refused(event.ContentSchemas, "weather")}, []string{"weather", "files_read", "ask"}, false, "The weather\nThe arguments match this JSON Schema: " + string(city), true},
		"of another model":    {[]event.Body{other}, []string{"weather", "files_read", "ask"}, true, "The weather", true},
		"until tools are set": {[]event.Body{refused(event.ContentTools, ""), weather}, []string{"weather", "files_read", "ask"}, true, "The weather", true},
	} {
		t.Run(name, func(t *testing.T) {
			model := &caller{}
			_, err := answered(t, toolbox{offer: offers}, model, append([]event.Body{weather, chosen}, test.refused...)...)
			require.NoError(t, err)
			var names []string
			for _, tool := range model.request.Tools {
				names = append(names, tool.Name)
			}
			require.Equal(t, test.tools, names)
			require.Equal(t, test.isChosen, model.request.Settings.ToolChoice != nil)
			if len(names) > 0 && names[0] == "weather" {
				require.Equal(t, test.description, model.request.Tools[0].Description)
				require.Equal(t, test.hasSchema, string(model.request.Tools[0].Parameters) == string(city))
			}
		})
	}
}
