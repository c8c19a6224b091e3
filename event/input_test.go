package event_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestInputWithAMisspeltFieldNamesTheNearestOne(t *testing.T) {
	for input, want := range map[string]string{
		`{"_tag":"SetTools","tools":["grep"],"aprove":["*"]}`:                                `SetToolsEvent: unknown field "aprove" (did you mean "approve"?)`,
		`{"_tag":"SetTools","maxStep":3}`:                                                    `SetToolsEvent: unknown field "maxStep" (did you mean "maxSteps"?)`,
		`{"_tag":"SetTools","Approve":["*"]}`:                                                `SetToolsEvent: unknown field "Approve" (did you mean "approve"?)`,
		`{"_tag":"SetTools","clientEventID":"a"}`:                                            `SetToolsEvent: unknown field "clientEventID" (did you mean "clientEventId"?)`,
		`{"_tag":"SetTools","tools":["a",{"nam":"ask"}]}`:                                    `SetToolsEvent.tools.1: unknown field "nam" (did you mean "name"?)`,
		`{"_tag":"SetTools","tools":[{"name":"ask","Name":"b"}]}`:                            `SetToolsEvent.tools.0: unknown field "Name" (did you mean "name"?)`,
		`{"_tag":"SetTools","tools":[{"name":"ask","schema":{}}]}`:                           `SetToolsEvent.tools.0: unknown field "schema" (want one of name, description, parameters)`,
		`{"_tag":"SetTools","approve":[{"tool":"a","wen":{}}]}`:                              `SetToolsEvent.approve.0: unknown field "wen" (did you mean "when"?)`,
		`{"_tag":"BudgetSet","token":5}`:                                                     `BudgetSetEvent: unknown field "token" (did you mean "tokens"?)`,
		`{"_tag":"SetCompaction","strategy":["truncate"]}`:                                   `SetCompactionEvent: unknown field "strategy" (did you mean "strategies"?)`,
		`{"_tag":"SetDeliveryPolicy","policy":"queue","wait":1}`:                             `SetDeliveryPolicyEvent: unknown field "wait" (want one of policy, quietPeriodMs, maxWaitMs, timestamp, contextName, parentEventId, clientEventId)`,
		`{"_tag":"SetProviderConfig","provider":"a","model":"m"}`:                            `SetProviderConfigEvent: unknown field "provider" (did you mean "providerId"?)`,
		`{"_tag":"SetRetryConfig","maxRetry":1}`:                                             `SetRetryConfigEvent: unknown field "maxRetry" (did you mean "maxRetries"?)`,
		`{"_tag":"SetTimeout","timeoutMS":7}`:                                                `SetTimeoutEvent: unknown field "timeoutMS" (did you mean "timeoutMs"?)`,
		`{"_tag":"SetRequestSettings","topp":0.5}`:                                           `SetRequestSettingsEvent: unknown field "topp" (did you mean "topP"?)`,
		`{"_tag":"ApprovalDecided","decision":"deny","reson":"x"}`:                           `ApprovalDecidedEvent: unknown field "reson" (did you mean "reason"?)`,
		`{"_tag":"SetRequestSettings","responseFormat":{"type":"json_object","stric":true}}`: `SetRequestSettingsEvent.responseFormat: unknown field "stric" (did you mean "strict"?)`,
		`{"_tag":"SetRequestSettings","toolChoice":{"nam":"x"}}`:                             `SetRequestSettingsEvent.toolChoice: unknown field "nam" (did you mean "name"?)`,
		`{"_tag":"UserMessage","content":"a","settings":{"sead":1}}`:                         `UserMessageEvent.settings: unknown field "sead" (did you mean "seed"?)`,
		`{"_tag":"UserMessage","content":"a","settings":{"Seed":1}}`:                         `UserMessageEvent.settings: unknown field "Seed" (did you mean "seed"?)`,
		`{"_tag":"FileAttachment","mediaType":"a/b","source":{"type":"url","uri":"x"}}`:      `FileAttachmentEvent.source: unknown field "uri" (did you mean "url"?)`,
		`{"_tag":"AssistantMessage","content":"a","providerState":{"modell":"m"}}`:           `AssistantMessageEvent.providerState: unknown field "modell" (did you mean "model"?)`,
		`[{"_tag":"SetTools"},{"_tag":"SetTools","tool":["a"]}]`:                             `event 2 of 2: SetToolsEvent: unknown field "tool" (did you mean "tools"?)`,

		`{"_tag":"SetTools","approve":["*"],"approve":[]}`:               `SetToolsEvent: repeated field "approve"`,
		`{"_tag":"SetTools","tools":[{"name":"a","name":"b"}]}`:          `SetToolsEvent.tools.0: repeated field "name"`,
		`{"_tag":"UserMessage","content":"a","content":"b"}`:             `UserMessageEvent: repeated field "content"`,
		`{"_tag":"UserMessage","content":"a","mood":1,"mood":2}`:         `UserMessageEvent: repeated field "mood"`,
		`{"_tag":"SetTools","_tag":"SetTimeout","timeoutMs":1}`:          `SetTimeoutEvent: repeated field "_tag"`,
		`{"_tag":"SetTools","sk-` + strings.Repeat("a1", 10) + `":true}`: `SetToolsEvent: unknown field "[removed]" (want one of tools, approve, maxSteps, parallel, maxRepeats, expiryMs, timestamp, contextName, parentEventId, clientEventId)`,

		// Metadata may have any name, except those that are probably meant as a field.
		`{"_tag":"UserMessage","content":"a","triggerTurn":false}`:  `UserMessageEvent: unknown field "triggerTurn" (did you mean "triggersTurn"?)`,
		`{"_tag":"UserMessage","content":"a","triggers_turn":1}`:    `UserMessageEvent: unknown field "triggers_turn" (did you mean "triggersTurn"?)`,
		`{"_tag":"UserMessage","content":"a","setting":{"seed":1}}`: `UserMessageEvent: unknown field "setting" (did you mean "settings"?)`,
		`{"_tag":"UserMessage","Content":"a"}`:                      `UserMessageEvent: unknown field "Content" (did you mean "content"?)`,
		`{"_tag":"UserMessage","content":"a","clientEventID":"x"}`:  `UserMessageEvent: unknown field "clientEventID" (did you mean "clientEventId"?)`,
	} {
		events, err := event.DecodeInput([]byte(input))
		require.EqualError(t, err, want, input)
		require.Nil(t, events)
		var invalid *event.FieldError
		require.ErrorAs(t, err, &invalid)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestMetadataOfContentIsKept(t *testing.T) {
	for _, input := range []string{
		`{"_tag":"UserMessageEvent","content":"a","context":"b","tag":"c","_id":7,"setup":{"Settings":1},"metadata":{"a":1,"b":[{}]}}`,
		`{"_tag":"NoteEvent","kind":"system","content":"a","king":1,"sessionId":"s"}`,
		`{"_tag":"ToolCallEvent","toolCallId":"c","toolName":"n","parameters":{"a":1,"Parameters":2},"duration":1}`,
		`{"_tag":"ToolResultEvent","toolCallId":"c","value":{"Value":1},"errors":0,"values":1}`,
		`{"_tag":"FileAttachmentEvent","source":{"type":"file","path":"a"},"mediaType":"a/b","sizes":[1],"origin":"x"}`,
		`{"_tag":"SystemPromptEvent","content":"a","version":3}`,
		`{"_tag":"AssistantMessageEvent","content":"a","model":"m"}`,
	} {
		events, err := event.DecodeInput([]byte(input))
		require.NoError(t, err, input)
		require.NoError(t, events[0].ValidateInput())
		data, err := events[0].MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, input, string(data))
	}
}

func TestOpaqueValuesMayHaveAnyNames(t *testing.T) {
	for _, input := range []string{
		`{"_tag":"SetTools","tools":[{"name":"a","parameters":{"Type":1,"propertys":{"a":{}},"a":1,"a":2}}],"approve":[{"tool":"a","when":{"x":1}}]}`,
		`{"_tag":"SetRequestSettings","extra":{"top_k":1,"topp":2},"labels":{"Seed":"x"},"responseFormat":{"type":"json_schema","schema":{"nam":1}}}`,
		`{"_tag":"ApprovalDecided","toolCallId":"c","decision":"approve","parameters":{"reson":1}}`,
		`{"_tag":"SetTools","tools":null,"maxSteps":null,"id":"demo:0001","timestamp":"2026-01-02T15:04:05Z","contextName":"demo","parentEventId":"demo:0000","clientEventId":"c"}`,
	} {
		_, err := event.DecodeInput([]byte(input))
		require.NoError(t, err, input)
	}
}

func TestRecordedEventsMayHaveUnknownFields(t *testing.T) {
	const recorded = `{"_tag":"SetToolsEvent","id":"demo:0001","contextName":"demo","tools":["a"],"aprove":["*"]}`
	var e event.Event
	require.NoError(t, e.UnmarshalJSON([]byte(recorded)))
	require.NoError(t, e.Validate())
	data, err := e.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, recorded, string(data))
	_, err = event.DecodeInput([]byte(recorded))
	require.ErrorContains(t, err, `unknown field "aprove"`)
	require.EqualError(t, e.ValidateInput(), `SetToolsEvent: unknown field "aprove" (did you mean "approve"?)`)
}

func TestValidateInputAgreesWithTheDecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := eventtest.Event().Draw(t, "event")
		data, err := e.MarshalJSON()
		require.NoError(t, err)
		_, err = event.DecodeInput(data)
		require.Equal(t, errorText(err), errorText(e.ValidateInput()))
	})
}

// misspell changes one letter of a name.
func misspell(t *rapid.T, name string) string {
	i := rapid.IntRange(0, len(name)-1).Draw(t, "letter")
	switch rapid.IntRange(0, 3).Draw(t, "mistake") {
	case 0:
		return name[:i] + name[i+1:]
	case 1:
		return name[:i] + name[i:i+1] + name[i:]
	case 2:
		return name[:i] + "~" + name[i+1:]
	default:
		return strings.ToUpper(name[:1]) + name[1:]
	}
}

// settings is an object in the JSON of an event whose unknown fields are errors.
type settings struct {
	root, values map[string]any
	names        []string
}

func misspeltFields(t require.TestingT, tag event.Tag, data []byte) (all []settings) {
	var root map[string]any
	require.NoError(t, json.Unmarshal(data, &root))
	add := func(value any) {
		values, _ := value.(map[string]any)
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(name string) bool { return name == "_tag" })
		if len(names) > 0 {
			all = append(all, settings{root, values, names})
		}
	}
	fields := root
	switch tag {
	case event.TagUserMessage:
		fields, _ = root["settings"].(map[string]any)
		add(fields)
	case event.TagFileAttachment:
		add(root["source"])
	case event.TagAssistantMessage:
		add(root["providerState"])
	case event.TagSystemPrompt, event.TagToolCall, event.TagToolResult, event.TagNote:
		return nil
	default:
		add(root)
	}
	add(fields["toolChoice"])
	add(fields["responseFormat"])
	for _, list := range []string{"tools", "approve"} {
		elements, _ := fields[list].([]any)
		for _, element := range elements {
			add(element)
		}
	}
	return all
}

func TestEverySettingWithAMisspeltFieldIsRejected(t *testing.T) {
	inputs := map[event.Tag][]event.Event{}
	for seed := range 5000 {
		e := event.New(eventtest.InputBody().Example(seed))
		data, err := e.MarshalJSON()
		require.NoError(t, err)
		if len(misspeltFields(t, e.Tag(), data)) > 0 {
			inputs[e.Tag()] = append(inputs[e.Tag()], e)
		}
	}
	for _, tag := range event.Tags() {
		if !tag.IsInput() || slices.Contains([]event.Tag{event.TagSystemPrompt, event.TagToolCall, event.TagToolResult, event.TagNote}, tag) {
			continue // only metadata
		}
		t.Run(string(tag), func(t *testing.T) {
			require.NotEmpty(t, inputs[tag])
			rapid.Check(t, func(t *rapid.T) {
				data, err := rapid.SampledFrom(inputs[tag]).Draw(t, "input").MarshalJSON()
				require.NoError(t, err)
				_, err = event.DecodeInput(data)
				require.NoError(t, err)
				object := rapid.SampledFrom(misspeltFields(t, tag, data)).Draw(t, "object")
				name := rapid.SampledFrom(object.names).Draw(t, "field")
				wrong := misspell(t, name)
				if slices.Contains(object.names, wrong) || wrong == "" {
					return
				}
				object.values[wrong] = object.values[name]
				if rapid.Bool().Draw(t, "instead") {
					delete(object.values, name)
				}
				data, err = json.Marshal(object.root)
				require.NoError(t, err)
				_, err = event.DecodeInput(data)
				require.ErrorContains(t, err, `unknown field "`+wrong+`" (`, string(data))
			})
		})
	}
}

func TestSuggestNamesTheNearestOrAll(t *testing.T) {
	for name, want := range map[string]string{
		"retires":   `(did you mean "retries"?)`,
		"RE_TRIES":  `(did you mean "retries"?)`,
		"something": "(want one of url, name, retries)",
		"sha":       "(want one of url, name, retries)",
		"uri":       `(did you mean "url"?)`,
		"nome":      `(did you mean "name"?)`,
		"trie":      `(did you mean "retries"?)`,
	} {
		require.Equal(t, want, event.Suggest(name, "url", "name", "retries"), name)
	}
	require.Empty(t, event.Suggest("name"))
}

func TestARejectedFieldIsThatOfTheSuggestion(t *testing.T) {
	for name, known := range map[string]string{
		"parent_event_id": "parentEventId", "CLIENT-EVENT-ID": "clientEventId",
	} {
		_, err := event.DecodeInput([]byte(`{"_tag":"Note","kind":"system","content":"a","` + name + `":"b"}`))
		require.ErrorContains(t, err, `(did you mean "`+known+`"?)`)
	}
}

func FuzzMembersAreThoseOfTheJSONDecoder(f *testing.F) {
	for _, object := range []string{
		`{}`, ` { "a" : "\\" , "a":{"b":[1,"}"]} } `, `{"":"a\\\",\"b\":"}`, "{\"\\u0022\":\n[\",\",{\"x\":\"}\"}]\t,\"n\":-1.5e3}", `{"a":null,"b":true,"c":[[],{}]}`,
	} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		if trimmed := bytes.TrimSpace(object); !json.Valid(object) || trimmed[0] != '{' {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(object))
		_, err := dec.Token()
		require.NoError(t, err)
		for name, value := range event.Members(object) {
			want, err := dec.Token()
			require.NoError(t, err)
			require.Equal(t, want, name)
			var raw json.RawMessage
			require.NoError(t, dec.Decode(&raw))
			require.Equal(t, string(raw), string(value))
		}
		require.False(t, dec.More())
	})
}
