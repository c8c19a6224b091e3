package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/constant"
	"go/types"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/describe"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// TestOpenAPIIsGenerated compares openapi.json with the routes and the types of their JSON; -update writes it.
func TestOpenAPIIsGenerated(t *testing.T) {
	source, err := describe.Load("..", "event", "reducer", "reducer/transcript", "internal/index", "internal/wire", "client", "gateway/auth", "gateway")
	require.NoError(t, err)
	api := newAPI(source)
	golden.File(t, "openapi.json", readable(t, api.document()))
}

// introduction describes the API, where no type or route does.
const introduction = "A context is a named, append-only list of events. Sending an event to a new name creates the context. " +
	"Answers do not depend on viewers: they continue when all viewers disconnect.\n\n" +
	"Events are flat JSON objects with a `_tag`. Clients send the tag, the fields of the event, and optionally a " +
	"`clientEventId` to find it again. All other fields are assigned.\n\n" +
	"Every error is a problem (RFC 9457). Every response has an `X-Request-Id`: the one of the request if it is valid " +
	"(1 to 64 of `A-Z a-z 0-9 . _ -`), or a generated one.\n\n" +
	"Streams are server-sent events. A stream ends with `retry:` when the gateway shuts down, and with a `problem` event on " +
	"an error. A comment every 15 seconds keeps it alive. Slow viewers receive fewer and larger updates. An address with " +
	"too many open streams gets 429; all addresses get 503 while the gateway has too many.\n\n" +
	"After 429 and 503, `Retry-After` is the delay before the next attempt."

// contextName is the pattern of names of contexts, see [event.ValidateContextName].
const contextName = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"

// Components that are no Go types.
func componentsOfTexts(quirk string) map[string]*jsonschema.Schema {
	const control = `\x00-\x1f\x7f-\x9f` + "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
	text := func(schema jsonschema.Schema) *jsonschema.Schema { schema.Type = "string"; return &schema }
	return map[string]*jsonschema.Schema{
		"ContextName": text(jsonschema.Schema{Pattern: "^" + contextName + "$"}),
		"EventID":     text(jsonschema.Schema{Pattern: "^" + contextName + ":[0-9]{4,}$", Examples: []any{"demo:0002"}}),
		"RequestID":   text(jsonschema.Schema{MinLength: new(1), Description: "The id of a request"}),
		"Name": text(jsonschema.Schema{
			MaxLength: new(event.MaxNameBytes), Pattern: "^[^" + control + "]*[^" + strings.Replace(control, `\x1f`, `\x20`, 1) + "][^" + control + "]*$",
			Description: fmt.Sprintf("Not blank, without control characters and bidirectional controls, at most %d bytes", event.MaxNameBytes),
		}),
		"ToolName": text(jsonschema.Schema{Pattern: "^[A-Za-z0-9_-]{1,64}$"}),
		"ClientEventID": text(jsonschema.Schema{
			MaxLength: new(event.MaxClientEventID),
			Description: fmt.Sprintf("The sender's id of the event, at most %d bytes. The context deduplicates by it among its newest thousand "+
				"events: a repeated event gets the id of the first. Within one request, only identical events may share an id. "+
				"Absent or empty: one is generated", event.MaxClientEventID),
		}),
		"IdempotencyKey": text(jsonschema.Schema{
			MaxLength: new(maxIdempotencyKey + len(`""`)),
			Description: "Events without a `clientEventId` get one derived from the key, the events and their position. The same " +
				"events sent again with the same key are deduplicated among the newest thousand events and get the same ids; " +
				"different events with the same key are rejected as a whole with 422. Input of more than 64 KiB is accepted " +
				"before this check; a rejection is then recorded in the log. The key may be quoted",
		}),
		"Quirks": {
			Type: "array", MaxItems: new(event.MaxQuirks), Items: text(jsonschema.Schema{Pattern: quirk}),
			Description: "What the worker repaired, skipped or worked around in the request or its answer, sorted; absent: nothing",
		},
		"ContextNames": {Type: "array", Items: describe.Ref("ContextName"), MinItems: new(1), MaxItems: new(maxFollowed)},
		"EventIDs":     {Type: "array", Items: describe.Ref("EventID"), MaxItems: new(maxFollowed)},
		"Version":      text(jsonschema.Schema{Description: "Opaque"}),
		"Limit":        {Type: "integer", Minimum: new(1.0), Maximum: new(float64(maxPage)), Default: json.RawMessage(strconv.Itoa(defaultPage))},
		"Days":         {Type: "integer", Minimum: new(1.0), Maximum: new(float64(maxShareDays)), Default: json.RawMessage(strconv.Itoa(defaultShareDays))},
		"Patch": {
			Type: "array", Items: describe.Ref("Operation"),
			Description: "The data of a `patch` event: a JSON Patch (RFC 6902) to a Document, with operations in order",
		},
	}
}

// ownNames tells types with the same name apart.
var ownNames = map[string]string{
	"reducer.Attachment": "MessageAttachment", "reducer.ToolCall": "MessageToolCall", "transcript.Status": "ToolStatus",
	"reducer.Compaction": "RunningCompaction", "gateway.transcriptPage": "Transcript",
	"auth.Role": "Permission", "auth.Who": "Person", "auth.Credential": "SignIn", "auth.Link": "ShareLink",
}

type api struct {
	schemas describe.Schemas
}

func newAPI(source *describe.Source) *api {
	a := &api{describe.Schemas{Source: source, Names: ownNames, Body: bodyOf}}
	pkg := reflect.TypeFor[event.Event]().PkgPath()
	var recorded, inputs []*jsonschema.Schema
	mapping := map[string]string{}
	for _, tag := range event.Tags() {
		name := short(tag)
		a.schemas.Add(source.Named(pkg, name))
		if tag.Class() != event.ClassEphemeral {
			recorded = append(recorded, describe.Ref(name))
		}
		if tag.IsInput() {
			inputs = append(inputs, describe.Ref(name))
			mapping[string(tag)] = describe.Reference + name
		}
	}
	for _, other := range []any{transcript.Operation{}, statusChange{}, wire.Forks("")} { // of streams and parameters
		a.of(other)
	}
	for name, schema := range componentsOfTexts(constant.StringVal(source.Value(source.Named(pkg, "Usage").Obj(), "quirkPattern"))) {
		a.schemas.Components[name] = schema
	}
	a.addEvent(recorded)
	a.schemas.Components["Input"] = &jsonschema.Schema{
		Description: "An event that a client sends. `_tag` may omit the suffix `Event`; the log has the full tag. Optional fields " +
			"that are `null` count as absent. Unknown fields of messages, attachments, tool calls, tool results and notes are kept " +
			"and returned; none may be named like an `apiKey`, at any depth. Unknown fields of other events and of nested objects " +
			"are rejected, and so are repeated names, names that differ by case, and those that resemble a field. `id`, `timestamp` " +
			"and `parentEventId` are assigned. A `contextName`, if present, must match the path",
		OneOf: inputs, Extra: map[string]any{"discriminator": map[string]any{"propertyName": "_tag", "mapping": mapping}},
		Examples: []any{event.New(event.UserMessage{Content: "Hello"})},
	}
	return a
}

func short(tag event.Tag) string { return strings.TrimSuffix(string(tag), "Event") }

// addEvent describes recorded events: the envelope and a body.
func (a *api) addEvent(bodies []*jsonschema.Schema) {
	envelope := a.schemas.Source.Named(reflect.TypeFor[event.Event]().PkgPath(), "envelope")
	a.schemas.Add(envelope)
	schema := a.schemas.Components["Envelope"]
	delete(a.schemas.Components, "Envelope")
	schema.Description = "An event of a log. It may have unknown fields that it was sent with"
	schema.AdditionalProperties, schema.OneOf = nil, bodies
	schema.Properties["_tag"] = &jsonschema.Schema{Type: "string", Pattern: "Event$"}
	schema.Required = []string{"_tag", "id", "timestamp", "contextName"}
	a.schemas.Components["Event"] = schema
}

// bodyOf returns the fields of the envelope that the body of an event stands with; nil for another type.
func bodyOf(named *types.Named) *jsonschema.Schema {
	tag := event.Tag(named.Obj().Name() + "Event")
	if tag.Class() == 0 || named.Obj().Pkg().Name() != "event" {
		return nil
	}
	schema := &jsonschema.Schema{
		Required: []string{"_tag"}, PropertyOrder: []string{"_tag"},
		Properties: map[string]*jsonschema.Schema{"_tag": {Const: new(any(tag))}},
	}
	if tag.IsInput() {
		schema.Properties["_tag"] = &jsonschema.Schema{Enum: []any{tag, short(tag)}}
		schema.Properties["clientEventId"] = describe.Ref("ClientEventID")
		schema.PropertyOrder = append(schema.PropertyOrder, "clientEventId")
	}
	return schema
}

type operation struct {
	ID          string           `json:"operationId"`
	Summary     string           `json:"summary"`
	Description string           `json:"description,omitempty"`
	Parameters  []any            `json:"parameters,omitempty"`
	RequestBody any              `json:"requestBody,omitempty"`
	Responses   map[string]reply `json:"responses"`
	Security    *[]any           `json:"security,omitempty"` // empty: no credential; nil: that of the document
}

type reply struct {
	Description string             `json:"description"`
	Content     map[string]content `json:"content,omitempty"`
}

type content struct {
	Schema *jsonschema.Schema `json:"schema,omitempty"`
}

func (a *api) document() any {
	paths := map[string]map[string]operation{}
	for _, route := range routes {
		method, path, _ := strings.Cut(route.pattern, " ")
		if paths[path] == nil {
			paths[path] = map[string]operation{}
		}
		paths[path][strings.ToLower(method)] = a.operation(route, path)
	}
	tags := a.schemas.Components["Tag"] // of which each file of an event declares one
	tags.Enum = nil
	for _, tag := range event.Tags() {
		tags.Enum = append(tags.Enum, string(tag))
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]string{
			"title": "Chronicle", "version": "1", "summary": "Durable conversations with language models", "description": introduction,
		},
		"servers": []any{map[string]string{"url": "/"}},
		"paths":   paths,
		"components": map[string]any{"schemas": a.schemas.Components, "securitySchemes": map[string]any{"token": map[string]string{
			"type": "http", "scheme": "bearer", "description": "A token of `starter token create`, or a JWT of the provider of the gateway",
		}}},
		"security": []any{map[string]any{"token": []any{}}, map[string]any{}}, // none: a gateway without authentication
	}
}

func (a *api) operation(route route, path string) operation {
	name := route.operation()
	gateway := a.schemas.Source.Named(reflect.TypeFor[Gateway]().PkgPath(), "Gateway")
	doc := a.schemas.Source.Doc(a.schemas.Source.Method(gateway, name), nil)
	summary, description, _ := strings.Cut(doc, ". ")
	o := operation{ID: name, Summary: summary, Description: description, Responses: map[string]reply{
		"default": {"The error", map[string]content{"application/problem+json": {a.of(Problem{})}}},
	}}
	if strings.Contains(path, "{name}") {
		o.Parameters = append(o.Parameters, a.parameter(parameter{"name", "path", "ContextName", "The name of the context"}, true))
	}
	for _, parameter := range route.parameters {
		o.Parameters = append(o.Parameters, a.parameter(parameter, parameter.in == "path" || parameter.name == route.required))
	}
	if len(route.roles) == 0 {
		o.Security = &[]any{}
	}
	answer := reply{route.answer, map[string]content{}}
	if route.result != nil {
		answer.Content["application/json"] = content{a.of(route.result)}
	}
	if route.stream != "" {
		answer.Content["text/event-stream"] = content{&jsonschema.Schema{Type: "string", Description: route.stream}}
	}
	for _, mediaType := range route.media {
		answer.Content[mediaType] = content{}
	}
	status := route.status
	if status == 0 {
		status = http.StatusOK
	}
	o.Responses[strconv.Itoa(status)] = answer
	if route.body != nil {
		o.RequestBody = map[string]any{"required": true, "content": map[string]content{"application/json": {a.of(route.body)}}}
	}
	if name == "sendEvents" {
		input := describe.Ref("Input")
		o.RequestBody = map[string]any{"required": true, "content": map[string]content{"application/json": {&jsonschema.Schema{OneOf: []*jsonschema.Schema{
			input, {Type: "array", MinItems: new(1), MaxItems: new(event.MaxInputEvents), Items: input},
		}}}}}
	}
	return o
}

func (a *api) of(value any) *jsonschema.Schema {
	if reflect.TypeOf(value).Kind() == reflect.Map {
		return &jsonschema.Schema{Type: "object"}
	}
	return a.schemas.Of(a.schemas.Source.Reflected(reflect.TypeOf(value)))
}

func (a *api) parameter(p parameter, isRequired bool) any {
	schema := &jsonschema.Schema{Type: "string"}
	if p.schema != "" {
		schema = describe.Ref(p.schema)
	}
	return struct {
		Name        string             `json:"name"`
		In          string             `json:"in"`
		Required    bool               `json:"required,omitempty"`
		Description string             `json:"description"`
		Schema      *jsonschema.Schema `json:"schema"`
	}{p.name, p.in, isRequired, p.description, schema}
}

// readable formats JSON with each value that fits into a line on one line.
func readable(t *testing.T, value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(value))
	data := regexp.MustCompile(`\\u00(3c|3e|26)`).ReplaceAllStringFunc(b.String(), func(escape string) string {
		n, _ := strconv.ParseUint(escape[2:], 16, 8)
		return string(rune(n))
	})
	var out bytes.Buffer
	format(&out, json.RawMessage(strings.TrimSpace(data)), "")
	return out.String() + "\n"
}

const lineLength = 160

func format(out *bytes.Buffer, raw json.RawMessage, indent string) {
	if len(indent)+len(raw) <= lineLength || raw[0] != '{' && raw[0] != '[' {
		out.Write(raw)
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	open, _ := decoder.Token()
	out.WriteString(open.(json.Delim).String())
	for separator := "\n"; decoder.More(); separator = ",\n" {
		out.WriteString(separator + indent + "  ")
		if raw[0] == '{' {
			name, _ := decoder.Token()
			fmt.Fprintf(out, "%q: ", name)
		}
		var value json.RawMessage
		_ = decoder.Decode(&value)
		format(out, value, indent+"  ")
	}
	end, _ := decoder.Token()
	out.WriteString("\n" + indent + end.(json.Delim).String())
}
