package event_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

// hash is a valid blob hash.
var hash = strings.Repeat("0123456789abcdef", 4)

// object returns a JSON object of a size in bytes.
func object(size int) string {
	return `{"x":"` + strings.Repeat("x", size-len(`{"x":""}`)) + `"}`
}

func TestInputIsDecoded(t *testing.T) {
	for _, tc := range []struct {
		name, json string
		want       event.Body
	}{
		{"a user message", `{"_tag":"UserMessageEvent","content":"Hello"}`, event.UserMessage{Content: "Hello"}},
		{"by its short tag", `{"_tag":"UserMessage","content":"Hello"}`, event.UserMessage{Content: "Hello"}},
		{"with space around it", " \n{ \"_tag\" : \"UserMessage\", \"content\" : \"Hello\" }\t", event.UserMessage{Content: "Hello"}},
		{"an empty content", `{"_tag":"SystemPrompt","content":""}`, event.SystemPrompt{}},
		{"an optional field that is null", `{"_tag":"UserMessage","content":"x","triggersTurn":null}`, event.UserMessage{Content: "x"}},
		{"zero retries, which is a single attempt", `{"_tag":"SetRetryConfig","maxRetries":0,"initialDelayMs":1}`,
			event.SetRetryConfig{MaxRetries: 0, InitialDelayMs: 1}},
		{"a temperature of zero", `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","temperature":0}`,
			event.SetProviderConfig{ProviderID: "openai", Model: "m", Temperature: new(0.0)}},
		{"a quiet period of zero", `{"_tag":"SetDeliveryPolicy","quietPeriodMs":0}`,
			event.SetDeliveryPolicy{QuietPeriodMs: new(int64(0))}},
		{"the default provider", `{"_tag":"SetProviderConfig","useDefault":true}`, event.SetProviderConfig{UseDefault: true}},
		{"no fallback", `{"_tag":"SetProviderConfig","useDefault":true,"asFallback":true}`, event.SetProviderConfig{UseDefault: true, AsFallback: true}},
		{"a key that is only referred to", `{"_tag":"SetProviderConfig","providerId":"openai","model":"m","apiKeyRef":"env:OPENAI_API_KEY"}`,
			event.SetProviderConfig{ProviderID: "openai", Model: "m", APIKeyRef: "env:OPENAI_API_KEY"}},
		{"a blob", `{"_tag":"FileAttachment","source":{"type":"blob","data":"AAH/"},"mediaType":"image/png"}`,
			event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte{0, 1, 0xff}}, MediaType: "image/png"}},
		{"a blob that is referred to", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + hash + `"},"mediaType":"image/png","size":3}`,
			event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: "sha256/" + hash}, MediaType: "image/png", Size: 3}},
		{"a blob that is referred to by its scheme", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"blob:sha256/` + hash + `"},"mediaType":"text/x-go; charset=utf-8","size":20971520}`,
			event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: "sha256/" + hash}, MediaType: "text/x-go; charset=utf-8", Size: event.MaxAttachmentBytes}},
		{"settings of a message", `{"_tag":"UserMessage","content":"x","settings":{"temperature":0,"stop":["a"],"toolChoice":{"name":"n"}}}`,
			event.UserMessage{Content: "x", Settings: &event.RequestSettings{
				Temperature: new(0.0), Stop: []string{"a"}, ToolChoice: &event.ToolChoice{Name: "n"},
			}}},
		{"no request settings, which resets them", `{"_tag":"SetRequestSettings","topP":null}`, event.SetRequestSettings{}},
		{"extra fields and a schema in their order", `{"_tag":"SetRequestSettings","extra":{ "b":"\u003c","a":1.50 },"toolChoice":"none",` +
			`"responseFormat":{"type":"json_schema","schema":{ "type" : "object" }}}`, event.SetRequestSettings{
			Extra: event.Object(`{"b":"\u003c","a":1.50}`), ToolChoice: &event.ToolChoice{Mode: "none"},
			ResponseFormat: &event.ResponseFormat{Type: event.FormatJSONSchema, Schema: event.Object(`{"type":"object"}`)},
		}},
		{"the largest schema", `{"_tag":"SetRequestSettings","responseFormat":{"type":"json_schema","schema":` + object(event.MaxSchemaBytes) + `}}`,
			event.SetRequestSettings{ResponseFormat: &event.ResponseFormat{
				Type: event.FormatJSONSchema, Schema: event.Object(object(event.MaxSchemaBytes)),
			}}},
		{"the largest extra", `{"_tag":"SetRequestSettings","extra":` + object(event.MaxExtraBytes) + `}`,
			event.SetRequestSettings{Extra: event.Object(object(event.MaxExtraBytes))}},
		{"parameters, canonicalized", `{"_tag":"ToolCall","toolCallId":"c","toolName":"n","parameters":{ "b":"\u003c","a":1.50 }}`,
			event.ToolCall{ToolCallID: "c", ToolName: "n", Parameters: json.RawMessage(`{"a":1.50,"b":"<"}`)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := event.DecodeInput([]byte(tc.json))
			require.NoError(t, err)
			require.Equal(t, []event.Event{event.New(tc.want)}, got)
		})
	}
}

// Each case names the invalid field. The error must not contain "s3cr3t".
func TestInvalidInputIsRejected(t *testing.T) {
	const retry = `"_tag":"SetRetryConfig","maxRetries":3,"initialDelayMs":100`
	const provider = `"_tag":"SetProviderConfig","providerId":"openai","model":"m"`
	const request = `"_tag":"SetRequestSettings",`
	for _, tc := range []struct {
		name, json, field string
	}{
		{"nothing", ``, ""},
		{"null", `null`, ""},
		{"a string", `"s3cr3t"`, ""},
		{"a number", `7`, ""},
		{"broken JSON", `{"_tag":"UserMessage","content":"s3cr3t`, ""},
		{"two objects", `{"_tag":"UserMessage","content":"a"}{"content":"s3cr3t"}`, ""},
		{"invalid UTF-8", "{\"_tag\":\"UserMessage\",\"content\":\"s3cr3t \xff\"}", ""},
		{"an empty array", `[]`, ""},
		{"a broken array", `[{"_tag":"UserMessage","content":"s3cr3t"}`, ""},
		{"an array of a number", `[1]`, ""},
		{"no tag", `{"content":"s3cr3t"}`, "_tag"},
		{"an unknown tag", `{"_tag":"Nonsense","content":"s3cr3t"}`, "_tag"},
		{"an empty tag", `{"_tag":""}`, "_tag"},
		{"a tag in another case", `{"_tag":"usermessage","content":"x"}`, "_tag"},
		{"a tag that is a number", `{"_tag":1}`, "_tag"},
		{"an API key as the tag", `{"_tag":"sk-s3cr3t-0123456789"}`, "_tag"},
		{"a missing field", `{"_tag":"UserMessage"}`, "content"},
		{"a required field that is null", `{"_tag":"UserMessage","content":null}`, "content"},
		{"a number for a string", `{"_tag":"UserMessage","content":1}`, "content"},
		{"a string for a bool", `{"_tag":"UserMessage","content":"x","triggersTurn":"s3cr3t"}`, "triggersTurn"},
		{"an id of the wrong type", `{"_tag":"UserMessage","content":"x","id":["s3cr3t"]}`, "id"},
		{"a client id that is too long", `{"_tag":"UserMessage","content":"x","clientEventId":"` + strings.Repeat("s3cr3t", 22) + `"}`, "clientEventId"},
		{"a time that is not RFC 3339", `{"_tag":"UserMessage","content":"x","timestamp":"yesterday s3cr3t"}`, "timestamp"},
		{"a time that is a number", `{"_tag":"UserMessage","content":"x","timestamp":1767366245}`, "timestamp"},
		{"a time after the year 9999 of UTC", `{"_tag":"UserMessage","content":"x","timestamp":"9999-12-31T23:59:59-01:00"}`, "timestamp"},
		{"a time before the year 0 of UTC", `{"_tag":"UserMessage","content":"x","timestamp":"0000-01-01T00:00:00+01:00"}`, "timestamp"},

		{"a note without a kind", `{"_tag":"Note","content":"x"}`, "kind"},
		{"a note of an unknown kind", `{"_tag":"Note","kind":"loud","content":"s3cr3t"}`, "kind"},
		{"a note without content", `{"_tag":"Note","kind":"error"}`, "content"},

		{"retries below zero", `{"_tag":"SetRetryConfig","maxRetries":-1,"initialDelayMs":100}`, "maxRetries"},
		{"absurdly many retries", `{"_tag":"SetRetryConfig","maxRetries":101,"initialDelayMs":100}`, "maxRetries"},
		{"half a retry", `{"_tag":"SetRetryConfig","maxRetries":0.5,"initialDelayMs":100}`, "maxRetries"},
		{"more retries than an integer holds", `{"_tag":"SetRetryConfig","maxRetries":99999999999999999999,"initialDelayMs":100}`, "maxRetries"},
		{"no delay", `{"_tag":"SetRetryConfig","maxRetries":3}`, "initialDelayMs"},
		{"a delay of zero", `{"_tag":"SetRetryConfig","maxRetries":3,"initialDelayMs":0}`, "initialDelayMs"},
		{"a delay below zero", `{"_tag":"SetRetryConfig","maxRetries":3,"initialDelayMs":-5}`, "initialDelayMs"},
		{"a delay over an hour", `{"_tag":"SetRetryConfig","maxRetries":3,"initialDelayMs":3600001}`, "initialDelayMs"},
		{"a factor of zero", `{` + retry + `,"backoffFactor":0}`, "backoffFactor"},
		{"a factor that shrinks", `{` + retry + `,"backoffFactor":0.9}`, "backoffFactor"},
		{"an absurd factor", `{` + retry + `,"backoffFactor":101}`, "backoffFactor"},
		{"a factor beyond every float", `{` + retry + `,"backoffFactor":1e999}`, "backoffFactor"},
		{"a factor that is not a number", `{` + retry + `,"backoffFactor":"NaN"}`, "backoffFactor"},
		{"a maximum below the first delay", `{` + retry + `,"maxDelayMs":99}`, "maxDelayMs"},
		{"a maximum over an hour", `{` + retry + `,"maxDelayMs":3600001}`, "maxDelayMs"},
		{"a timeout of zero", `{"_tag":"SetTimeout","timeoutMs":0}`, "timeoutMs"},
		{"a timeout below zero", `{"_tag":"SetTimeout","timeoutMs":-1}`, "timeoutMs"},
		{"a timeout over a day", `{"_tag":"SetTimeout","timeoutMs":86400001}`, "timeoutMs"},
		{"a first-token timeout of zero", `{"_tag":"SetTimeout","timeoutMs":5,"firstTokenMs":0}`, "firstTokenMs"},
		{"a first-token timeout beyond the timeout", `{"_tag":"SetTimeout","timeoutMs":5,"firstTokenMs":6}`, "firstTokenMs"},
		{"a stall timeout of zero", `{"_tag":"SetTimeout","timeoutMs":5,"stallMs":0}`, "stallMs"},
		{"a stall timeout beyond the timeout", `{"_tag":"SetTimeout","timeoutMs":5,"stallMs":6}`, "stallMs"},
		{"a stall timeout of another type", `{"_tag":"SetTimeout","timeoutMs":5,"stallMs":"1s"}`, "stallMs"},
		{"an unknown policy", `{"_tag":"SetDeliveryPolicy","policy":"shout"}`, "policy"},
		{"a policy event without fields", `{"_tag":"SetDeliveryPolicy"}`, "policy"},
		{"a quiet period below zero", `{"_tag":"SetDeliveryPolicy","quietPeriodMs":-1}`, "quietPeriodMs"},
		{"a quiet period over a minute", `{"_tag":"SetDeliveryPolicy","quietPeriodMs":60001}`, "quietPeriodMs"},
		{"a maximum wait over a minute", `{"_tag":"SetDeliveryPolicy","maxWaitMs":60001}`, "maxWaitMs"},

		{"a negative temperature of requests", `{` + request + `"temperature":-1}`, "temperature"},
		{"no tokens of requests", `{` + request + `"maxTokens":0}`, "maxTokens"},
		{"a topP above one", `{` + request + `"topP":1.1}`, "topP"},
		{"a topP in quotes", `{` + request + `"topP":"s3cr3t"}`, "topP"},
		{"a stop that is a string", `{` + request + `"stop":"s3cr3t"}`, "stop"},
		{"no stops", `{` + request + `"stop":[]}`, "stop"},
		{"five stops", `{` + request + `"stop":["a","b","c","d","s3cr3t"]}`, "stop"},
		{"an empty stop", `{` + request + `"stop":[""]}`, "stop"},
		{"a long stop", `{` + request + `"stop":["` + strings.Repeat("s3cr3t", 50) + `"]}`, "stop"},
		{"half a seed", `{` + request + `"seed":0.5}`, "seed"},
		{"a seed that no integer holds", `{` + request + `"seed":9223372036854775808}`, "seed"},
		{"a frequency penalty above two", `{` + request + `"frequencyPenalty":2.1}`, "frequencyPenalty"},
		{"a presence penalty below minus two", `{` + request + `"presencePenalty":-2.1}`, "presencePenalty"},
		{"an unknown effort", `{` + request + `"reasoningEffort":"sk-s3cr3t-0123456789"}`, "reasoningEffort"},
		{"a state of a provider without a URL", `{"_tag":"AssistantMessage","content":"","providerState":{"providerId":"p","model":"m","data":{}}}`, "providerState.baseUrl"},
		{"a state with a key in its URL", `{"_tag":"AssistantMessage","content":"","providerState":{"providerId":"p","model":"m","baseUrl":"https://s3cr3t@x/v1","data":{}}}`, "providerState.baseUrl"},
		{"a state that is a text", `{"_tag":"AssistantMessage","content":"","providerState":{"providerId":"p","model":"m","baseUrl":"https://x/v1","data":"s3cr3t"}}`, "providerState.data"},
		{"a state without data", `{"_tag":"AssistantMessage","content":"","providerState":{"providerId":"p","model":"m","baseUrl":"https://x/v1"}}`, "providerState.data"},
		{"a state with a key", `{"_tag":"AssistantMessage","content":"","providerState":{"providerId":"p","model":"m","baseUrl":"https://x/v1","data":{"apiKey":"s3cr3t"}}}`, "providerState.data.apiKey"},
		{"a state nested too deeply", `{"_tag":"AssistantMessage","content":"","providerState":{"providerId":"p","model":"m","baseUrl":"https://x/v1","data":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}}`, "providerState.data"},
		{"an unknown reasoning", `{` + request + `"reasoning":"sk-s3cr3t-0123456789"}`, "reasoning"},
		{"an unknown tool choice", `{` + request + `"toolChoice":"any"}`, "toolChoice"},
		{"a tool choice that is a number", `{` + request + `"toolChoice":1}`, "toolChoice"},
		{"a tool on two lines", `{` + request + `"toolChoice":{"name":"a\ns3cr3t"}}`, "toolChoice.name"},
		{"a response format without a type", `{` + request + `"responseFormat":{}}`, "responseFormat.type"},
		{"an unknown response format", `{` + request + `"responseFormat":{"type":"xml"}}`, "responseFormat.type"},
		{"a schema of another format", `{` + request + `"responseFormat":{"type":"json_object","schema":{"a":"s3cr3t"}}}`, "responseFormat.type"},
		{"a format without its schema", `{` + request + `"responseFormat":{"type":"json_schema"}}`, "responseFormat.schema"},
		{"a schema that is no object", `{` + request + `"responseFormat":{"type":"json_schema","schema":"s3cr3t"}}`, "responseFormat.schema"},
		{"a schema with a raw key", `{` + request + `"responseFormat":{"type":"json_schema","schema":{"apiKey":"s3cr3t"}}}`, "responseFormat.schema.apiKey"},
		{"a schema that is too large", `{` + request + `"responseFormat":{"type":"json_schema","schema":` + object(event.MaxSchemaBytes+1) + `}}`, "responseFormat.schema"},
		{"a schema with a name of two words", `{` + request + `"responseFormat":{"type":"json_schema","name":"a b","schema":{}}}`, "responseFormat.name"},
		{"extra fields that are no object", `{` + request + `"extra":["s3cr3t"]}`, "extra"},
		{"too many extra fields", `{` + request + `"extra":` + object(event.MaxExtraBytes+1) + `}`, "extra"},
		{"extra messages", `{` + request + `"extra":{"messages":["s3cr3t"]}}`, "extra.messages"},
		{"an extra model in capitals", `{` + request + `"extra":{"MODEL":"s3cr3t"}}`, "extra.model"},
		{"an extra key", `{` + request + `"extra":{"a":{"apiKey":"s3cr3t"}}}`, "extra.a.apiKey"},
		{"no labels", `{` + request + `"labels":{}}`, "labels"},
		{"a label that is a key", `{` + request + `"labels":{"apiKey":"s3cr3t"}}`, "labels.apiKey"},
		{"a label that is a number", `{` + request + `"labels":{"a":1}}`, "labels"},
		{"a blank label", `{` + request + `"labels":{" ":"s3cr3t"}}`, "labels"},
		{"a label with a long name", `{` + request + `"labels":{"` + strings.Repeat("a", 65) + `":""}}`, "labels"},
		{"a long label", `{` + request + `"labels":{"a":"` + strings.Repeat("s3cr3t", 100) + `"}}`, "labels"},
		{"invalid settings of a message", `{"_tag":"UserMessage","content":"x","settings":{"topP":-1}}`, "settings.topP"},
		{"settings of a message that are a string", `{"_tag":"UserMessage","content":"x","settings":"s3cr3t"}`, "settings"},
		{"settings of a message with a string for a list", `{"_tag":"UserMessage","content":"x","settings":{"stop":"s3cr3t"}}`, "settings.stop"},
		{"an extra key of a message", `{"_tag":"UserMessage","content":"x","settings":{"extra":{"apiKey":"s3cr3t"}}}`, "settings.extra.apiKey"},
		{"extra tools of a message", `{"_tag":"UserMessage","content":"x","settings":{"extra":{"tools":[]}}}`, "settings.extra.tools"},

		{"no provider", `{"_tag":"SetProviderConfig","model":"m"}`, "providerId"},
		{"a provider and the default", `{"_tag":"SetProviderConfig","useDefault":true,"providerId":"openai","model":"m"}`, "useDefault"},
		{"the default with a limit", `{"_tag":"SetProviderConfig","useDefault":true,"maxTokens":5}`, "useDefault"},
		{"a blank provider", `{"_tag":"SetProviderConfig","providerId":" ","model":"m"}`, "providerId"},
		{"a model on two lines", `{"_tag":"SetProviderConfig","providerId":"openai","model":"a\ns3cr3t"}`, "model"},
		{"a model of a kilobyte", `{"_tag":"SetProviderConfig","providerId":"openai","model":"` + strings.Repeat("m", 1024) + `"}`, "model"},
		{"a temperature below zero", `{` + provider + `,"temperature":-0.1}`, "temperature"},
		{"an absurd temperature", `{` + provider + `,"temperature":2.1}`, "temperature"},
		{"no tokens", `{` + provider + `,"maxTokens":0}`, "maxTokens"},
		{"absurdly many tokens", `{` + provider + `,"maxTokens":10000001}`, "maxTokens"},
		{"a raw key as the reference", `{` + provider + `,"apiKeyRef":"sk-s3cr3t"}`, "apiKeyRef"},
		{"a raw key behind env", `{` + provider + `,"apiKeyRef":"env:sk-s3cr3t"}`, "apiKeyRef"},
		{"a raw key behind file", `{` + provider + `,"apiKeyRef":"file:s3cr3t"}`, "apiKeyRef"},
		{"a reference that is an object", `{` + provider + `,"apiKeyRef":{"env":"s3cr3t"}}`, "apiKeyRef"},
		{"a base URL with a password", `{` + provider + `,"baseUrl":"https://me:s3cr3t@example.com/v1"}`, "baseUrl"},
		{"a base URL with a query", `{` + provider + `,"baseUrl":"https://example.com/v1?key=s3cr3t"}`, "baseUrl"},
		{"a base URL of another scheme", `{` + provider + `,"baseUrl":"ftp://s3cr3t"}`, "baseUrl"},
		{"a base URL with a backslash", `{` + provider + `,"baseUrl":"https://s3cr3t\\example.com"}`, "baseUrl"},
		{"a base URL with an escape", `{` + provider + `,"baseUrl":"https://example.com/%2e%2e/s3cr3t"}`, "baseUrl"},
		{"a base URL beyond ASCII", `{` + provider + `,"baseUrl":"https://s3cr3t.ex\u00e4mple.com"}`, "baseUrl"},
		{"a reference with a control character", `{` + provider + `,"apiKeyRef":"file:/s3cr3t\u009b"}`, "apiKeyRef"},
		{"a base URL without a host", `{` + provider + `,"baseUrl":"https:///s3cr3t"}`, "baseUrl"},

		{"an attachment without a source", `{"_tag":"FileAttachment","mediaType":"image/png"}`, "source"},
		{"a source that is a string", `{"_tag":"FileAttachment","source":"s3cr3t","mediaType":"image/png"}`, "source"},
		{"a source of an unknown type", `{"_tag":"FileAttachment","source":{"type":"ftp"},"mediaType":"image/png"}`, "source.type"},
		{"a source type of the wrong type", `{"_tag":"FileAttachment","source":{"type":["s3cr3t"]},"mediaType":"image/png"}`, "source.type"},
		{"a file without a path", `{"_tag":"FileAttachment","source":{"type":"file"},"mediaType":"image/png"}`, "source.path"},
		{"a path that is a number", `{"_tag":"FileAttachment","source":{"type":"file","path":5},"mediaType":"image/png"}`, "source.path"},
		{"a url of another scheme", `{"_tag":"FileAttachment","source":{"type":"url","url":"javascript:s3cr3t"},"mediaType":"image/png"}`, "source.url"},
		{"a url without a host", `{"_tag":"FileAttachment","source":{"type":"url","url":"https:s3cr3t"},"mediaType":"image/png"}`, "source.url"},
		{"a url with a password", `{"_tag":"FileAttachment","source":{"type":"url","url":"https://me:s3cr3t@example.com"},"mediaType":"image/png"}`, "source.url"},
		{"a blob without data", `{"_tag":"FileAttachment","source":{"type":"blob"},"mediaType":"image/png"}`, "source.data"},
		{"a blob that is not base64", `{"_tag":"FileAttachment","source":{"type":"blob","data":"s3cr3t!"},"mediaType":"image/png"}`, "source.data"},
		{"a blob that is a number", `{"_tag":"FileAttachment","source":{"type":"blob","data":5},"mediaType":"image/png"}`, "source.data"},
		{"a blob with data and a ref", `{"_tag":"FileAttachment","source":{"type":"blob","data":"AAH/","ref":"sha256/` + hash + `"},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref that is a number", `{"_tag":"FileAttachment","source":{"type":"blob","ref":5},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref that is a secret", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sk-s3cr3t-0123456789"},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref with another hash function", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha512/` + hash + `"},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref in capitals", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + strings.ToUpper(hash) + `"},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref that is too short", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + hash[1:] + `"},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref with a trailing newline", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + hash + `\n"},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref with two schemes", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"blob:blob:sha256/` + hash + `"},"mediaType":"image/png","size":3}`, "source.ref"},
		{"a ref without a size", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + hash + `"},"mediaType":"image/png"}`, "size"},
		{"a ref of too many bytes", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + hash + `"},"mediaType":"image/png","size":20971521}`, "size"},
		{"a ref with an unsupported media type", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + hash + `"},"mediaType":"video/mp4","size":3}`, "mediaType"},
		{"a ref without a media type", `{"_tag":"FileAttachment","source":{"type":"blob","ref":"sha256/` + hash + `"},"size":3}`, "mediaType"},
		{"a malformed media type", `{"_tag":"FileAttachment","source":{"type":"file","path":"x"},"mediaType":"picture"}`, "mediaType"},
		{"a size below zero", `{"_tag":"FileAttachment","source":{"type":"file","path":"x"},"mediaType":"image/png","size":-1}`, "size"},
		{"a tool call without an id", `{"_tag":"ToolCall","toolCallId":"","toolName":"n"}`, "toolCallId"},
		{"a tool call without a name", `{"_tag":"ToolCall","toolCallId":"c","toolName":""}`, "toolName"},
		{"a tool result without an id", `{"_tag":"ToolResult","toolCallId":"","value":1}`, "toolCallId"},
		{"a tool result without a value", `{"_tag":"ToolResult","toolCallId":"c","value":null}`, "value"},
		{"a tool result with a value and an error", `{"_tag":"ToolResult","toolCallId":"c","value":1,"error":"s3cr3t"}`, "error"},

		{"apiKey", `{` + provider + `,"apiKey":"s3cr3t"}`, "apiKey"},
		{"apiKey that is not even a string", `{` + provider + `,"apiKey":{"value":"s3cr3t"}}`, "apiKey"},
		{"api_key", `{` + provider + `,"api_key":"s3cr3t"}`, "api_key"},
		{"API-KEY", `{` + provider + `,"API-KEY":"s3cr3t"}`, "API-KEY"},
		{"X-Api-Key", `{` + provider + `,"X-Api-Key":"s3cr3t"}`, "X-Api-Key"},
		{"OPENAI_API_KEY", `{` + provider + `,"OPENAI_API_KEY":"s3cr3t"}`, "OPENAI_API_KEY"},
		{"api.key", `{` + provider + `,"api.key":"s3cr3t"}`, "api.key"},
		{"apiKeys", `{` + provider + `,"apiKeys":["s3cr3t"]}`, "apiKeys"},
		{"apiKey with an escape", `{` + provider + `,"api\u004bey":"s3cr3t"}`, "apiKey"},
		{"apiKey in an event of another tag", `{"_tag":"UserMessage","content":"x","apiKey":"s3cr3t"}`, "apiKey"},
		{"apiKey in a field nobody knows", `{"_tag":"UserMessage","content":"x","meta":{"a":[0,{"apiKey":"s3cr3t"}]}}`, "meta.a.1.apiKey"},
		{"apiKey in a source", `{"_tag":"FileAttachment","source":{"type":"file","path":"x","apiKey":"s3cr3t"},"mediaType":"image/png"}`, "source.apiKey"},
		{"apiKey in parameters", `{"_tag":"ToolCall","toolCallId":"c","toolName":"n","parameters":{"apiKey":"s3cr3t"}}`, "parameters.apiKey"},
		{"apiKey in a tool result", `{"_tag":"ToolResult","toolCallId":"c","value":[{"apiKey":"s3cr3t"}]}`, "value.0.apiKey"},

		{"an event of a session", `{"_tag":"SessionStartedEvent","loadedEventCount":0}`, "_tag"},
		{"the end of a session", `{"_tag":"SessionEndedEvent","reason":"s3cr3t"}`, "_tag"},
		{"an event of a request, by its short tag", `{"_tag":"LLMRequestFailed","requestId":"r","error":"s3cr3t","retriesAttempted":0}`, "_tag"},
		{"a rejection", `{"_tag":"InputRejectedEvent","reason":"s3cr3t","input":""}`, "_tag"},
		{"an ephemeral event", `{"_tag":"TextDeltaEvent","requestId":"r","attempt":1,"index":0,"delta":"s3cr3t"}`, "_tag"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events, err := event.DecodeInput([]byte(tc.json))
			require.Error(t, err)
			require.Nil(t, events)
			var fe *event.FieldError
			require.ErrorAs(t, err, &fe)
			require.Equal(t, tc.field, fe.Field)
			require.NotEmpty(t, fe.Problem)
			require.NotContains(t, err.Error(), "s3cr3t")
			require.Contains(t, err.Error(), tc.field)
		})
	}
}

func TestOnlyInputTagsAreAcceptedAsInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := eventtest.Body().Draw(t, "body")
		data, err := json.Marshal(event.New(body))
		require.NoError(t, err)
		_, err = event.DecodeInput(data)
		require.Equal(t, body.Tag().IsInput(), err == nil, "%v", err)
	})
	for _, tag := range event.Tags() {
		require.NotZero(t, tag.Class())
	}
	require.Zero(t, event.Tag("UserMessage").Class(), "the short form is not a Tag")
}

func TestErrorMessages(t *testing.T) {
	for in, want := range map[string]string{
		`{"_tag":"SetTimeout","timeoutMs":0}`:                             "SetTimeoutEvent.timeoutMs: want 1 to 86400000, got 0",
		`{"_tag":"UserMessage"}`:                                          "UserMessageEvent.content: missing",
		`{"_tag":"UserMessage","content":1}`:                              "UserMessageEvent.content: want a string, got the number 1",
		`[{"_tag":"UserMessage","content":"a"},{"_tag":"UserMessage"}]`:   "event 2 of 2: UserMessageEvent.content: missing",
		`{"_tag":"SessionEnded","reason":"x"}`:                            "SessionEndedEvent._tag: reserved for the session (clients cannot send it)",
		`{"_tag":"LLMRequestFailed"}`:                                     "LLMRequestFailedEvent._tag: reserved for the session (clients cannot send it)",
		`7`:                                                               `want a JSON object like {"_tag":"UserMessageEvent","content":"Hello"}, got the number 7`,
		`{"_tag":"UserMessage","content":"x","timestamp":"noon"}`:         "UserMessageEvent.timestamp: want an RFC 3339 time like 2026-01-02T15:04:05Z, got a string",
		`{"_tag":"UserMessage","content":"x","apiKey":"abc"}`:             "UserMessageEvent.apiKey: a raw key is not allowed (use apiKeyRef, such as env:OPENAI_API_KEY)",
		`{"_tag":"SetRequestSettings","stop":"x"}`:                        "SetRequestSettingsEvent.stop: want a list of strings, got a string",
		`{"_tag":"SetRequestSettings","extra":{"n":2}}`:                   "SetRequestSettingsEvent.extra.n: reserved for the worker (extra cannot set model, messages, stream, stream_options, tools, functions, function_call, n)",
		`{"_tag":"FileAttachment","mediaType":"a/b","source":{"type":1}}`: "FileAttachmentEvent.source.type: want a string, got a number",
		`{"_tag":"FileAttachment","mediaType":"image/png","size":99999999,"source":{"type":"blob","ref":"sha256/` + hash + `"}}`: "FileAttachmentEvent.size: want 1 to 20971520 bytes with a ref, got 99999999",
		`{"_tag":"FileAttachment","mediaType":"video/mp4","size":9,"source":{"type":"blob","ref":"sha256/` + hash + `"}}`: `FileAttachmentEvent.mediaType: with a ref, want image/png, image/jpeg, image/gif, image/webp, audio/wav, audio/mpeg, ` +
			`application/pdf, text/*, application/json or another application type that is text; got "video/mp4"`,
	} {
		_, err := event.DecodeInput([]byte(in))
		require.EqualError(t, err, want)
	}
}

func TestInvalidGoValuesAreRejected(t *testing.T) {
	for _, tc := range []struct {
		name, field string
		body        event.Body
	}{
		{"a factor of NaN", "backoffFactor", event.SetRetryConfig{InitialDelayMs: 1, BackoffFactor: new(math.NaN())}},
		{"an infinite factor", "backoffFactor", event.SetRetryConfig{InitialDelayMs: 1, BackoffFactor: new(math.Inf(1))}},
		{"a temperature of NaN", "temperature", event.SetProviderConfig{ProviderID: "p", Model: "m", Temperature: new(math.NaN())}},
		{"an infinite temperature", "temperature", event.SetProviderConfig{ProviderID: "p", Model: "m", Temperature: new(math.Inf(-1))}},
		{"a content that is not UTF-8", "content", event.UserMessage{Content: "\xff"}},
		{"parameters that are not JSON", "parameters", event.ToolCall{ToolCallID: "c", ToolName: "n", Parameters: json.RawMessage(`{`)}},
		{"parameters with a raw key", "parameters.apiKey", event.ToolCall{ToolCallID: "c", ToolName: "n", Parameters: json.RawMessage(`{"apiKey":1}`)}},
		{"a tool result of null", "value", event.ToolResult{ToolCallID: "c", Value: json.RawMessage(`null`)}},
		{"an interruption for no known reason", "reason", event.LLMRequestInterrupted{RequestID: "r", Reason: "boredom"}},
		{"a request without an id", "requestId", event.LLMRequestStarted{}},
		{"a negative count", "loadedEventCount", event.SessionStarted{LoadedEventCount: -1}},
		{"a fork of no event", "forkedFrom", event.SessionStarted{ForkedFrom: "demo"}},
		{"a topP of NaN", "topP", event.SetRequestSettings{TopP: new(math.NaN())}},
		{"a stop that is not UTF-8", "stop", event.SetRequestSettings{Stop: []string{"\xff"}}},
		{"extra fields that are not JSON", "extra", event.SetRequestSettings{Extra: event.Object(`{`)}},
		{"extra fields with a raw key", "extra.apiKey", event.SetRequestSettings{Extra: event.Object(`{"apiKey":1}`)}},
		{"a label with a raw key", "labels", event.SetRequestSettings{Labels: map[string]string{"api_key": "x"}}},
		{"a label that is not UTF-8", "labels", event.SetRequestSettings{Labels: map[string]string{"a": "\xff"}}},
		{"no body", "_tag", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var fe *event.FieldError
			require.ErrorAs(t, event.New(tc.body).Validate(), &fe)
			require.Equal(t, tc.field, fe.Field)
		})
	}
	t.Run("an extra field with a raw key", func(t *testing.T) {
		e := event.New(event.UserMessage{Content: "x"})
		e.Extra = map[string]json.RawMessage{"meta": json.RawMessage(`{"apiKey":"s3cr3t"}`)}
		require.ErrorContains(t, e.Validate(), "meta.apiKey")
	})
	t.Run("an event without a body cannot be encoded", func(t *testing.T) {
		_, err := json.Marshal(event.Event{})
		require.ErrorContains(t, err, "_tag")
	})
}

func TestAnArrayIsAcceptedOrRejectedAsAWhole(t *testing.T) {
	events, err := event.DecodeInput([]byte(` [{"_tag":"UserMessage","content":"a"}, {"_tag":"SystemPrompt","content":"b"}]`))
	require.NoError(t, err)
	require.Equal(t, []event.Event{event.New(event.UserMessage{Content: "a"}), event.New(event.SystemPrompt{Content: "b"})}, events)

	events, err = event.DecodeInput([]byte(`[{"_tag":"UserMessage","content":"a"},{"_tag":"SystemPrompt"},{"_tag":"UserMessage","content":"c"}]`))
	require.EqualError(t, err, "event 2 of 3: SystemPromptEvent.content: missing")
	require.Nil(t, events)
}

func TestUserMessagesTriggerATurnByDefault(t *testing.T) {
	require.True(t, event.UserMessage{}.Triggers())
	require.True(t, event.UserMessage{TriggersTurn: new(true)}.Triggers())
	require.False(t, event.UserMessage{TriggersTurn: new(false)}.Triggers())
}

func TestSourcesHaveShortNames(t *testing.T) {
	require.Equal(t, "a/b.txt", event.Source{Type: event.SourceFile, Path: "a/b.txt"}.String())
	require.Equal(t, "https://example.com/a.png", event.Source{Type: event.SourceURL, URL: "https://example.com/a.png"}.String())
	require.Equal(t, "data:image/png;base64,…", event.Source{Type: event.SourceURL, URL: "data:image/png;base64,AAAA"}.String())
	require.Equal(t, "blob", event.Source{Type: event.SourceBlob, Data: []byte("x")}.String())
	require.Equal(t, "blob:sha256/"+hash, event.Source{Type: event.SourceBlob, Ref: "sha256/" + hash}.String())
}

func FuzzDecodeInput(f *testing.F) {
	for _, seed := range []string{
		`{"_tag":"UserMessage","content":"Hello"}`,
		`[{"_tag":"SystemPrompt","content":"a"},{"_tag":"ToolCall","toolCallId":"c","toolName":"n","parameters":{"a":[1,null]}}]`,
		`{"_tag":"FileAttachment","source":{"type":"blob","data":"AAH/"},"mediaType":"image/png","x":{"apiKeyRef":"env:A"}}`,
		`{"_tag":"FileAttachment","source":{"type":"blob","ref":"blob:sha256/` + hash + `"},"mediaType":"image/png","size":3}`,
		`{"_tag":"UserMessage","content":"x","settings":{"stop":["a"],"toolChoice":{"name":"n"},"extra":{"b":1,"a":[{}]},"labels":{"user":"u"}}}`,
		`{"_tag":"SetRequestSettings","toolChoice":"auto","responseFormat":{"type":"json_schema","schema":{"a":1},"schema":{"b":2}}}`,
		`{"_tag":"SetRetryConfig","maxRetries":3,"initialDelayMs":100,"backoffFactor":2.5,"timestamp":"9999-12-31T23:59:59-01:00"}`,
		"{\"_tag\":\"UserMessage\",\"content\":\"\xff\"}", `{"a":{"b":{"apiKey":1},"b":2}}`, `[[]]`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := event.DecodeInput(data)
		if err != nil {
			return
		}
		encoded, err := json.Marshal(first)
		require.NoError(t, err)
		second, err := event.DecodeInput(encoded)
		require.NoError(t, err, "%s", encoded)
		again, err := json.Marshal(second)
		require.NoError(t, err)
		require.True(t, bytes.Equal(encoded, again), "%s\n%s", encoded, again)
	})
}

func TestNamesHaveNoControlCharacters(t *testing.T) {
	for _, r := range []rune{
		0x00, '\t', '\n', '\r', 0x1b, 0x1f, 0x7f, 0x80, 0x85, 0x9b, 0x9d, 0x9f,
		0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069,
	} {
		name := "na" + string(r) + "me"
		for field, body := range map[string]event.Body{
			"providerId": event.SetProviderConfig{ProviderID: name, Model: "m"},
			"model":      event.SetProviderConfig{ProviderID: "p", Model: name},
			"toolName":   event.ToolCall{ToolCallID: "1", ToolName: name},
		} {
			var failed *event.FieldError
			require.ErrorAs(t, event.New(body).Validate(), &failed, "%U", r)
			require.Equal(t, field, failed.Field)
			require.Contains(t, failed.Problem, "has a control character")
		}
	}
	for _, name := range []string{"gpt-4o", "qwen2.5:7b", "mod\u00e8le \u6a21\u578b", "\u200bzero width", "a b", "\u05d0\u05d1"} {
		require.NoError(t, event.New(event.SetProviderConfig{ProviderID: name, Model: name}).Validate(), "%q", name)
	}
}
