package chat

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// decodeOpenAI reads a conversation that begins on the current line. It calls take only
// after it has parsed the whole conversation.
func decodeOpenAI(in input, take func(event.Event) error) error {
	first := in.Number
	data, err := in.document()
	if err != nil {
		return err
	}
	lineAt := func(offset int64) int { return first + bytes.Count(data[:offset], []byte("\n")) }

	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		return fmt.Errorf("line %d: is not JSON: %w", lineAt(syntax.Offset), err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := seekMessages(decoder); err != nil {
		return fmt.Errorf("line %d: %w", lineAt(decoder.InputOffset()), err)
	}
	d := dialogue{open: map[string]bool{}, model: modelIn(data)}
	for n := 1; decoder.More(); n++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if err == nil {
			err = d.add(raw)
		}
		if err != nil {
			return fmt.Errorf("line %d, message %d: %w", lineAt(decoder.InputOffset()-int64(len(raw))), n, err)
		}
	}
	if len(d.events) == 0 {
		return fmt.Errorf("line %d: the conversation has no messages", first)
	}
	for _, e := range d.events {
		if err := take(e); err != nil {
			return err
		}
	}
	return nil
}

// document returns the rest of the input from the current line on. It keeps blank lines, so that
// line numbers in errors are correct.
func (in input) document() ([]byte, error) {
	data := bytes.Clone(in.Text)
	isWhole := json.Valid(data)
	for {
		if !utf8.Valid(in.Text) {
			return nil, in.Errorf("is not valid UTF-8 (JSON requires it: RFC 8259, section 8.1)")
		}
		last := in.Number
		if !in.next() {
			return data, in.Err()
		}
		if isWhole {
			return nil, in.Errorf("found data after the conversation (a file holds one conversation)")
		}
		if len(data)+in.Number-last+len(in.Text) > maxDocument {
			return nil, in.Errorf("conversation exceeds %d bytes", maxDocument)
		}
		data = append(data, strings.Repeat("\n", in.Number-last)...)
		data = append(data, in.Text...)
	}
}

func seekMessages(decoder *json.Decoder) error {
	token, err := decoder.Token()
	for token == json.Delim('{') && decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		if name == "mapping" {
			return errExport
		}
		if name == "messages" {
			token, err = decoder.Token()
			if err == nil && token != json.Delim('[') {
				return problem("messages", "want an array")
			}
			return err
		}
		var other json.RawMessage
		if err := decoder.Decode(&other); err != nil {
			return err
		}
	}
	if err == nil && token != json.Delim('[') {
		return errors.New("the object has neither _tag nor messages: " + wanted)
	}
	return err
}

func modelIn(data []byte) string {
	var d struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(data, &d) != nil {
		return ""
	}
	return d.Model
}

type dialogue struct {
	events []event.Event
	// system holds the texts of the system messages so far.
	system []string
	// open holds the ids of calls without a result.
	open map[string]bool
	// model made the reasoning details; "" if unknown.
	model string
}

// incoming is a [message] with undecoded content.
type incoming struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	Refusal      string          `json:"refusal"`
	ToolCalls    []toolCall      `json:"tool_calls"`
	ToolCallID   string          `json:"tool_call_id"`
	FunctionCall json.RawMessage `json:"function_call"`
	// OpenRouter, Groq and Ollama call the reasoning "reasoning", others reasoning_content.
	Reasoning        string          `json:"reasoning"`
	ReasoningContent string          `json:"reasoning_content"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
}

func (d *dialogue) add(raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return errors.New(`want a message like {"role":"user","content":"Hello"}`)
	}
	if fields["mapping"] != nil {
		return errExport
	}
	if fields["_tag"] != nil {
		return problem("_tag", "unexpected in a message (write events one per line, not in an array)")
	}
	if err := event.RejectKeys(fields); err != nil {
		return err
	}
	var m incoming
	if err := json.Unmarshal(raw, &m); err != nil {
		return wrongType(err)
	}
	parts, err := partsOf(m.Content)
	if err != nil {
		return err
	}
	mayBeSilent := m.Role == string(reducer.RoleAssistant) && (m.Refusal != "" || len(m.ToolCalls) > 0 || cmp.Or(m.ReasoningContent, m.Reasoning) != "")
	if len(parts) == 0 && !mayBeSilent {
		return problem("content", "missing")
	}
	text, attachments, err := split(parts, m.Role == string(reducer.RoleUser))
	if err != nil {
		return err
	}
	switch m.Role {
	case string(reducer.RoleSystem), roleDeveloper:
		return d.addSystem(text)
	case string(reducer.RoleUser):
		for _, a := range attachments {
			if err := d.record("", a); err != nil {
				return err
			}
		}
		return d.record("", event.UserMessage{Content: text})
	case string(reducer.RoleAssistant):
		return d.addAnswer(m, cmp.Or(text, m.Refusal))
	case string(reducer.RoleTool):
		return d.addResult(m, text)
	default:
		return problem("role", "want system, developer, user, assistant or tool, got %q", event.Redact(m.Role, 64))
	}
}

// record adds an event, normalized by encoding and decoding it.
func (d *dialogue) record(id string, body event.Body) error {
	e := event.New(body)
	e.ID = id
	data, err := e.MarshalJSON()
	if err == nil {
		err = e.UnmarshalJSON(data)
	}
	d.events = append(d.events, e)
	return err
}

func (d *dialogue) addSystem(text string) error {
	if text == "" {
		return nil
	}
	d.system = append(d.system, text) // a log has one system prompt
	return d.record("", event.SystemPrompt{Content: strings.Join(d.system, betweenTexts)})
}

func (d *dialogue) addAnswer(m incoming, text string) error {
	if len(m.FunctionCall) > 0 && string(m.FunctionCall) != "null" {
		return problem("function_call", "unsupported (use tool_calls)")
	}
	// A temporary id for the calls to reference; placing assigns the final one.
	id := strconv.Itoa(len(d.events) + 1)
	answer := event.AssistantMessage{Content: text, Reasoning: cmp.Or(m.ReasoningContent, m.Reasoning), ProviderState: d.stateOf(m)}
	if err := d.record(id, answer); err != nil {
		return err
	}
	called := map[string]bool{}
	for i, call := range m.ToolCalls {
		if call.Type != "" && call.Type != typeFunction {
			return problem(fmt.Sprintf("tool_calls.%d.type", i), "want %s", typeFunction)
		}
		if called[call.ID] {
			return problem(fmt.Sprintf("tool_calls.%d.id", i), "duplicate call id in this message")
		}
		called[call.ID], d.open[call.ID] = true, true
		parameters, err := parametersOf(call.Function.Arguments)
		if err != nil {
			return err
		}
		if err := d.record("", event.ToolCall{
			ToolCallID: call.ID, MessageID: id, ToolName: call.Function.Name, Parameters: parameters,
		}); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the reasoning details of a message for OpenRouter; nil if there are none, or if
// their model is unknown.
func (d *dialogue) stateOf(m incoming) *event.ProviderState {
	if d.model == "" || len(m.ReasoningDetails) == 0 || m.ReasoningDetails[0] != '[' {
		return nil
	}
	data := append(append([]byte(`{"reasoning_details":`), m.ReasoningDetails...), '}')
	return &event.ProviderState{ProviderID: openRouter, Model: d.model, BaseURL: openRouterURL, Data: data}
}

func parametersOf(arguments string) (json.RawMessage, error) {
	if strings.TrimSpace(arguments) == "" {
		return nil, nil
	}
	if json.Valid([]byte(arguments)) {
		return json.RawMessage(arguments), nil
	}
	return json.Marshal(arguments) // a JSON string
}

func (d *dialogue) addResult(m incoming, text string) error {
	if !d.open[m.ToolCallID] {
		return problem("tool_call_id", "matches no earlier call without a result")
	}
	delete(d.open, m.ToolCallID)
	value, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return d.record("", event.ToolResult{ToolCallID: m.ToolCallID, Value: value})
}

func partsOf(content json.RawMessage) ([]part, error) {
	var text string
	var parts []part
	switch {
	case len(content) == 0:
		return nil, nil
	case content[0] == '"':
		err := json.Unmarshal(content, &text)
		return []part{{Type: partText, Text: text}}, err
	case content[0] == '[' || string(content) == "null":
		if err := json.Unmarshal(content, &parts); err != nil {
			return nil, within("content", wrongType(err))
		}
		return parts, nil
	default:
		return nil, problem("content", "want a string or an array of parts")
	}
}

func split(parts []part, mayAttach bool) (string, []event.FileAttachment, error) {
	var texts []string
	var attachments []event.FileAttachment
	for i, p := range parts {
		switch {
		case p.Type == partText || p.Type == partRefusal:
			if text := p.Text + p.Refusal; text != "" {
				texts = append(texts, text)
			}
		case mayAttach:
			a, err := attachmentOf(p)
			if err != nil {
				return "", nil, within(fmt.Sprintf("content.%d", i), err)
			}
			attachments = append(attachments, a)
		default:
			return "", nil, problem(fmt.Sprintf("content.%d.type", i), "want text (only user messages may have attachments)")
		}
	}
	return strings.Join(texts, betweenTexts), attachments, nil
}

func attachmentOf(p part) (event.FileAttachment, error) {
	switch {
	case p.Type == partImage && p.ImageURL != nil:
		if strings.HasPrefix(p.ImageURL.URL, "data:") {
			return inline(p.ImageURL.URL, "image_url.url")
		}
		return event.FileAttachment{
			Source: event.Source{Type: event.SourceURL, URL: p.ImageURL.URL}, MediaType: imageTypeOf(p.ImageURL.URL),
		}, nil
	case p.Type == partAudio && p.InputAudio != nil:
		mediaType, ok := map[string]string{audioWAV: "audio/wav", audioMP3: "audio/mpeg"}[p.InputAudio.Format]
		if !ok {
			return event.FileAttachment{}, problem("input_audio.format", "want %s or %s", audioWAV, audioMP3)
		}
		data, err := base64.StdEncoding.DecodeString(p.InputAudio.Data)
		if err != nil {
			err = problem("input_audio.data", "want bytes in base64 (RFC 4648)")
		}
		return blob(mediaType, data), err
	case p.Type == partFile && p.File != nil && p.File.FileData != "":
		data := p.File.FileData
		if !strings.HasPrefix(data, "data:") {
			data = "data:application/pdf;base64," + data
		}
		a, err := inline(data, "file.file_data")
		a.FileName = p.File.Filename
		return a, err
	case p.Type == partFile && p.File != nil:
		return event.FileAttachment{}, problem("file.file_data", "missing (a file_id cannot be resolved; embed the file)")
	case p.Type == partImage || p.Type == partAudio || p.Type == partFile:
		return event.FileAttachment{}, problem(p.Type, "missing")
	default:
		return event.FileAttachment{}, problem("type", "want %s, %s, %s or %s, got %q",
			partText, partImage, partAudio, partFile, event.Redact(p.Type, 64))
	}
}

func inline(raw, field string) (event.FileAttachment, error) {
	mediaType, data, err := event.DecodeDataURL(raw)
	if err != nil {
		return event.FileAttachment{}, problem(field, "want a data URL like data:image/png;base64,… (RFC 2397)")
	}
	return blob(mediaType, data), nil
}

func blob(mediaType string, data []byte) event.FileAttachment {
	return event.FileAttachment{
		Source: event.Source{Type: event.SourceBlob, Data: data}, MediaType: mediaType, Size: int64(len(data)),
	}
}

// The media type must be one that models accept. The model server fetches the image itself, so the
// exact type does not matter.
func imageTypeOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "image/jpeg"
	}
	switch ext := strings.ToLower(path.Ext(u.Path)); ext {
	case ".png", ".gif", ".webp":
		return "image/" + ext[1:]
	default:
		return "image/jpeg"
	}
}

func problem(field, format string, args ...any) error {
	return &event.FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

func within(outer string, err error) error {
	var fe *event.FieldError
	if !errors.As(err, &fe) || fe.Tag != "" {
		return err
	}
	return problem(strings.TrimSuffix(outer+"."+fe.Field, "."), "%s", fe.Problem)
}

func wrongType(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		want := "an object"
		switch mismatch.Type.Kind() {
		case reflect.String:
			want = "a string"
		case reflect.Slice:
			want = "an array"
		}
		return problem(mismatch.Field, "want %s, got %s", want, mismatch.Value)
	}
	return err
}
