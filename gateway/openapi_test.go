package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	folded "github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

var described = sync.OnceValue(func() map[string]*jsonschema.Schema {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", document); err != nil {
		panic(err)
	}
	schemas := map[string]*jsonschema.Schema{}
	for name := range document.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		schemas[name] = compiler.MustCompile("openapi.json#/components/schemas/" + name)
	}
	return schemas
})

func validate(schema string, data []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return described()[schema].Validate(value)
}

func requireValid(t require.TestingT, schema string, value any) {
	data, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, validate(schema, data), "%s: %s", schema, data)
}

func TestAcceptedEventsMatchTheDescription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := event.New(eventtest.InputBody().Draw(t, "body"))
		e.ClientEventID = rapid.SampledFrom([]string{"", "client-1"}).Draw(t, "client id")
		if rapid.Bool().Draw(t, "has extra") {
			e.Extra = map[string]json.RawMessage{"x-mine": eventtest.Value().Draw(t, "extra")}
			if e.ValidateInput() != nil {
				e.Extra = nil // settings have no unknown fields
			}
		}
		data, err := e.MarshalJSON()
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "is short") {
			data = bytes.Replace(data, []byte(`Event"`), []byte(`"`), 1)
		}
		require.NoError(t, validate("Input", data), "%s", data)
		read, err := event.DecodeInput(data)
		require.NoError(t, err, "%s", data)
		require.Equal(t, []event.Event{e}, read)
	})
}

// Each input violates both the description and the decoder.
func TestRejectedEventsViolateTheDescription(t *testing.T) {
	const ref = `{"type":"blob","ref":"sha256/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`
	for name, input := range map[string]string{
		"no object":                     `"Hello"`,
		"no tag":                        `{"content":"Hello"}`,
		"an unknown tag":                `{"_tag":"UserMessages","content":"Hello"}`,
		"a tag of the session":          `{"_tag":"SessionEndedEvent","reason":"x"}`,
		"a delta":                       `{"_tag":"TextDeltaEvent","requestId":"demo:r0001","attempt":1,"index":0,"delta":"x"}`,
		"a typo":                        `{"_tag":"UserMessageEvent","contents":"Hello"}`,
		"null":                          `{"_tag":"UserMessageEvent","content":null}`,
		"another type":                  `{"_tag":"UserMessageEvent","content":["Hello"]}`,
		"a string for a boolean":        `{"_tag":"UserMessageEvent","content":"Hello","triggersTurn":"no"}`,
		"a client id of another type":   `{"_tag":"UserMessageEvent","content":"Hello","clientEventId":1}`,
		"a client id too long":          `{"_tag":"UserMessageEvent","content":"Hello","clientEventId":"` + strings.Repeat("x", event.MaxClientEventID+1) + `"}`,
		"no content of a prompt":        `{"_tag":"SystemPrompt"}`,
		"partial of another type":       `{"_tag":"AssistantMessage","content":"x","partial":1}`,
		"no source":                     `{"_tag":"FileAttachment","mediaType":"image/png"}`,
		"no media type":                 `{"_tag":"FileAttachment","source":{"type":"file","path":"x"}}`,
		"an invalid media type":         `{"_tag":"FileAttachment","source":{"type":"file","path":"x"},"mediaType":"png"}`,
		"an unknown source":             `{"_tag":"FileAttachment","source":{"type":"ftp","path":"x"},"mediaType":"image/png"}`,
		"a file without a path":         `{"_tag":"FileAttachment","source":{"type":"file"},"mediaType":"image/png"}`,
		"an empty path":                 `{"_tag":"FileAttachment","source":{"type":"file","path":""},"mediaType":"image/png"}`,
		"a URL of a file":               `{"_tag":"FileAttachment","source":{"type":"url","url":"file:///etc/passwd"},"mediaType":"image/png"}`,
		"a URL with a user":             `{"_tag":"FileAttachment","source":{"type":"url","url":"https://me:pw@example.com/x"},"mediaType":"image/png"}`,
		"a blob without bytes":          `{"_tag":"FileAttachment","source":{"type":"blob"},"mediaType":"image/png"}`,
		"invalid base64":                `{"_tag":"FileAttachment","source":{"type":"blob","data":"a-b_"},"mediaType":"image/png"}`,
		"a short ref":                   `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/0123"},"mediaType":"image/png","size":1}`,
		"data and a ref":                `{"_tag":"FileAttachment","source":{"data":"AAAA",` + ref[1:] + `,"mediaType":"image/png","size":1}`,
		"a ref without a size":          `{"_tag":"FileAttachment","source":` + ref + `,"mediaType":"image/png"}`,
		"a ref with too large a size":   fmt.Sprintf(`{"_tag":"FileAttachment","source":%s,"mediaType":"image/png","size":%d}`, ref, event.MaxAttachmentBytes+1),
		"a negative size":               `{"_tag":"FileAttachment","source":{"type":"file","path":"x"},"mediaType":"image/png","size":-1}`,
		"a call without an id":          `{"_tag":"ToolCall","toolName":"weather"}`,
		"a call with an empty id":       `{"_tag":"ToolCall","toolCallId":"","toolName":"weather"}`,
		"a call with a blank tool":      `{"_tag":"ToolCall","toolCallId":"1","toolName":" "}`,
		"a tool name with a newline":    `{"_tag":"ToolCall","toolCallId":"1","toolName":"a\nb"}`,
		"a tool with a long name":       `{"_tag":"ToolCall","toolCallId":"1","toolName":"` + strings.Repeat("x", event.MaxNameBytes+1) + `"}`,
		"a result without a value":      `{"_tag":"ToolResult","toolCallId":"1"}`,
		"a null value":                  `{"_tag":"ToolResult","toolCallId":"1","value":null}`,
		"a value and an error":          `{"_tag":"ToolResult","toolCallId":"1","value":1,"error":2}`,
		"a note of unknown kind":        `{"_tag":"Note","kind":"idea","content":"x"}`,
		"negative retries":              `{"_tag":"SetRetryConfig","maxRetries":-1,"initialDelayMs":1}`,
		"too many retries":              fmt.Sprintf(`{"_tag":"SetRetryConfig","maxRetries":%d,"initialDelayMs":1}`, event.MaxMaxRetries+1),
		"retries without a delay":       `{"_tag":"SetRetryConfig","maxRetries":1}`,
		"a zero delay":                  `{"_tag":"SetRetryConfig","maxRetries":1,"initialDelayMs":0}`,
		"too long a delay":              fmt.Sprintf(`{"_tag":"SetRetryConfig","maxRetries":1,"initialDelayMs":%d}`, event.MaxDelayMs+1),
		"half a millisecond":            `{"_tag":"SetRetryConfig","maxRetries":1,"initialDelayMs":0.5}`,
		"a factor below one":            `{"_tag":"SetRetryConfig","maxRetries":1,"initialDelayMs":1,"backoffFactor":0.9}`,
		"too large a factor":            fmt.Sprintf(`{"_tag":"SetRetryConfig","maxRetries":1,"initialDelayMs":1,"backoffFactor":%d}`, event.MaxBackoffFactor+1),
		"a zero maximum delay":          `{"_tag":"SetRetryConfig","maxRetries":1,"initialDelayMs":1,"maxDelayMs":0}`,
		"no model":                      `{"_tag":"SetProviderConfig","providerId":"openai"}`,
		"a key instead of a reference":  `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","apiKeyRef":"sk-live"}`,
		"a URL with a query":            `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","baseUrl":"https://example.com/v1?key=x"}`,
		"a model with controls":         `{"_tag":"SetProviderConfig","providerId":"openai","model":"m\u001b[2J"}`,
		"a model with C1 controls":      `{"_tag":"SetProviderConfig","providerId":"openai","model":"m\u009b2J"}`,
		"a provider with bidi controls": `{"_tag":"SetProviderConfig","providerId":"open\u202eai","model":"m"}`,
		"a URL with an escape":          `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","baseUrl":"https://example.com/%2e%2e/v1"}`,
		"a URL with a backslash":        `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","baseUrl":"https://example.com/\\v1"}`,
		"a URL of a socket":             `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","baseUrl":"unix:///run/x"}`,
		"too high a temperature":        fmt.Sprintf(`{"_tag":"SetProviderConfig","providerId":"openai","model":"m","temperature":%d.1}`, event.MaxTemperature),
		"no tokens":                     `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","maxTokens":0}`,
		"too many tokens":               fmt.Sprintf(`{"_tag":"SetProviderConfig","providerId":"openai","model":"m","maxTokens":%d}`, event.MaxMaxTokens+1),
		"a zero timeout":                `{"_tag":"SetTimeout","timeoutMs":0}`,
		"more than a day":               fmt.Sprintf(`{"_tag":"SetTimeout","timeoutMs":%d}`, event.MaxTimeoutMs+1),
		"a zero firstTokenMs":           `{"_tag":"SetTimeout","timeoutMs":1000,"firstTokenMs":0}`,
		"a zero stallMs":                `{"_tag":"SetTimeout","timeoutMs":1000,"stallMs":0}`,
		"no delivery setting":           `{"_tag":"SetDeliveryPolicy"}`,
		"an unknown policy":             `{"_tag":"SetDeliveryPolicy","policy":"drop"}`,
		"a negative period":             `{"_tag":"SetDeliveryPolicy","quietPeriodMs":-1}`,
		"too long a period":             fmt.Sprintf(`{"_tag":"SetDeliveryPolicy","quietPeriodMs":%d}`, event.MaxQuietPeriodMs+1),
		"an unknown setting":            `{"_tag":"UserMessage","content":"x","settings":{"topp":0.5}}`,
		"an unknown field of a format":  `{"_tag":"SetRequestSettings","responseFormat":{"type":"text","kind":"x"}}`,
		"an unknown field of a choice":  `{"_tag":"SetRequestSettings","toolChoice":{"name":"x","type":"function"}}`,
		"an unknown field of a tool":    `{"_tag":"SetTools","tools":[{"name":"x","schema":{}}]}`,
		"an unknown field of a rule":    `{"_tag":"SetTools","approve":[{"tool":"x","if":{}}]}`,
		"an unknown field of a source":  `{"_tag":"FileAttachment","source":{"type":"url","url":"https://a.b","uri":"x"},"mediaType":"image/png"}`,
		"an unknown field of a state":   `{"_tag":"AssistantMessage","content":"x","providerState":{"providerId":"a","model":"m","baseUrl":"http://a","data":{},"x":1}}`,
		"too long a wait":               fmt.Sprintf(`{"_tag":"SetDeliveryPolicy","maxWaitMs":%d}`, event.MaxQuietPeriodMs+1),
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(input)), input)
			require.Error(t, validate("Input", []byte(input)), input)
			_, err := event.DecodeInput([]byte(input))
			require.Error(t, err, input)
		})
	}
}

func TestEventsMatchTheDescription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := eventtest.Event().Draw(t, "event")
		if e.Tag().Class() == event.ClassEphemeral {
			requireValid(t, strings.TrimSuffix(string(e.Tag()), "Event"), e)
			return
		}
		requireValid(t, "Event", e)
		e.ID = ""
		data, err := e.MarshalJSON()
		require.NoError(t, err)
		require.Error(t, validate("Event", data), "an event without an id")
	})
}

func TestStatesMatchTheDescription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := reducer.Load("demo", reducer.Reduce, eventtest.Log("demo").Draw(t, "log")...)
		if rapid.Bool().Draw(t, "is answering") {
			s.Request = &reducer.Request{
				ID: "demo:r0001", Through: eventID(1), Attempt: 2, ProviderID: "openai", Model: "m",
				Fallback: rapid.Bool().Draw(t, "fallback"), Dropped: eventID(2), Returns: 1, SendAt: eventtest.Epoch, Since: eventtest.Epoch,
				Taken: eventID(2), Retries: 1, RetryAt: eventtest.Epoch, JitterMs: 5, Messages: 2, Repair: &reducer.Repair{Answer: "{", Problem: "p"},
				Stop: rapid.SampledFrom([]event.Reason{"", event.ReasonNewUserInput, event.ReasonCancelled, event.ReasonTimeout}).Draw(t, "stop"),
			}
		}
		requireValid(t, "State", wire.StateOf(s, eventtest.Epoch))
	})
}

func TestTranscriptsMatchTheDescription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { requireDescribed(t, eventtest.Log("demo").Draw(t, "log")) })
	stories, err := filepath.Glob("../reducer/transcript/testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, stories)
	for _, file := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			story, err := txtar.ParseFile(file)
			require.NoError(t, err)
			events := eventsOf(t, story.Files[0].Data)
			for n := range events {
				requireDescribed(t, events[:n+1])
			}
		})
	}
	t.Run("tools", func(t *testing.T) {
		const patch = `*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n*** End Patch`
		events := eventsOf(t, []byte(`
{"_tag":"ToolCall","toolCallId":"1","toolName":"Grep","parameters":{"pattern":"x","path":"a"}}
{"_tag":"ToolCall","toolCallId":"2","toolName":"WebFetch","parameters":{"url":"https://example.com"}}
{"_tag":"ToolCall","toolCallId":"3","toolName":"TodoWrite","parameters":{"todos":[{"content":"x","status":"pending"}]}}
{"_tag":"ToolCall","toolCallId":"4","toolName":"ExitPlanMode","parameters":{"plan":"x"}}
{"_tag":"ToolCall","toolCallId":"5","toolName":"Task","parameters":{"description":"x"}}
{"_tag":"ToolCall","toolCallId":"6","toolName":"ApplyPatch","parameters":{"patch":"`+patch+`"}}
{"_tag":"ToolCall","toolCallId":"7","toolName":"Bash","parameters":{"command":"x"},"status":"pending_approval"}
{"_tag":"ToolResult","toolCallId":"1","error":{"type":"timeout_error","message":"after 60 s"},"isError":true}
{"_tag":"ToolResult","toolCallId":"2","error":{"type":"PermissionDenied","message":"no"},"isError":true}
{"_tag":"ToolResult","toolCallId":"7","value":"ok\nExit code: 0"}
`+strings.Repeat(`{"_tag":"ToolResult","toolCallId":"8","value":"of no call"}`+"\n", folded.MaxWaiting+1)))
		requireDescribed(t, events)
	})
}

// requireDescribed validates the transcript, and each patch.
func requireDescribed(t require.TestingT, events []event.Event) {
	p := folded.NewPatcher()
	requireValid(t, "Document", p.Document())
	for _, e := range events {
		if patch := p.Apply(e); patch != nil {
			requireValid(t, "Patch", patch)
		}
	}
	requireValid(t, "Document", p.Document())
	all, ok := p.Since(0)
	require.True(t, ok)
	requireValid(t, "Patch", all)
}

func eventsOf(t *testing.T, script []byte) (events []event.Event) {
	last := 0
	for line := range bytes.Lines(script) {
		fields, isDelta := bytes.CutPrefix(line, []byte("delta {"))
		if isDelta {
			line = slices.Concat([]byte(`{"_tag":"TextDelta",`), fields)
		}
		if line[0] != '{' {
			continue
		}
		var e event.Event
		require.NoError(t, e.UnmarshalJSON(line), "%s", line)
		if !isDelta {
			last++
			e.ID, e.Timestamp = event.FormatID("demo", last), eventtest.Epoch
		}
		events = append(events, e)
	}
	return events
}
