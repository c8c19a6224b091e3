package exchange

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

// decodeOpenAI reads a conversation that begins on the line that was read. It
// hands over its events when all of it is read.
func decodeOpenAI(in *lines, take func(event.Event) error) error {
	first := in.number
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
	d := dialogue{open: map[string]bool{}}
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
		return fmt.Errorf("line %d: a conversation without a message", first)
	}
	for _, e := range d.events {
		if err := take(e); err != nil {
			return err
		}
	}
	return nil
}

// document is all that is left of the input, from the line that was read on, with
// as many lines.
func (l *lines) document() ([]byte, error) {
	data := bytes.Clone(l.text)
	isWhole := json.Valid(data)
	for {
		if !utf8.Valid(l.text) {
			return nil, l.errorf("is not UTF-8, which JSON is (RFC 8259, section 8.1)")
		}
		last := l.number
		if !l.next() {
			return data, l.failed()
		}
		if isWhole {
			return nil, l.errorf("stands behind the end of the conversation; a file holds one")
		}
		if len(data)+l.number-last+len(l.text) > MaxDocumentBytes {
			return nil, l.errorf("more than %d bytes; a conversation has no more", MaxDocumentBytes)
		}
		data = append(data, strings.Repeat("\n", l.number-last)...)
		data = append(data, l.text...)
	}
}

// seekMessages goes to the first message.
func seekMessages(decoder *json.Decoder) error {
	token, err := decoder.Token()
	for token == json.Delim('{') && decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
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
		return errors.New("an object with neither _tag nor messages: " + wanted)
	}
	return err
}

// dialogue is a conversation being read.
type dialogue struct {
	events []event.Event
	// system are the texts of the system messages so far.
	system []string
	// open are the calls without a result.
	open map[string]bool
}

// incoming is a [message] before its content is looked at.
type incoming struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	Refusal      string          `json:"refusal"`
	ToolCalls    []toolCall      `json:"tool_calls"`
	ToolCallID   string          `json:"tool_call_id"`
	FunctionCall json.RawMessage `json:"function_call"`
}

func (d *dialogue) add(raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return errors.New(`want a message like {"role":"user","content":"Hello"}`)
	}
	if fields["_tag"] != nil {
		return problem("_tag", "is that of an event, of which one stands on a line, and none in an array")
	}
	if err := event.RefuseKeys(fields); err != nil {
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
	mayBeSilent := m.Role == string(reducer.RoleAssistant) && (m.Refusal != "" || len(m.ToolCalls) > 0)
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

// record adds an event in the form in which events are kept.
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

// addSystem adds to the system prompt, of which a log has one.
func (d *dialogue) addSystem(text string) error {
	if text == "" {
		return nil
	}
	d.system = append(d.system, text)
	return d.record("", event.SystemPrompt{Content: strings.Join(d.system, betweenTexts)})
}

func (d *dialogue) addAnswer(m incoming, text string) error {
	if len(m.FunctionCall) > 0 && string(m.FunctionCall) != "null" {
		return problem("function_call", "is the older form of tool_calls, which is not read")
	}
	// For the calls to name it; the log gives it another one.
	id := strconv.Itoa(len(d.events) + 1)
	if err := d.record(id, event.AssistantMessage{Content: text}); err != nil {
		return err
	}
	called := map[string]bool{}
	for i, call := range m.ToolCalls {
		if call.Type != "" && call.Type != typeFunction {
			return problem(fmt.Sprintf("tool_calls.%d.type", i), "want %s", typeFunction)
		}
		if called[call.ID] {
			return problem(fmt.Sprintf("tool_calls.%d.id", i), "is that of another call of the message")
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

// parametersOf are arguments as they stand in a log. Models write some that are
// not JSON.
func parametersOf(arguments string) (json.RawMessage, error) {
	if strings.TrimSpace(arguments) == "" {
		return nil, nil
	}
	if json.Valid([]byte(arguments)) {
		return json.RawMessage(arguments), nil
	}
	return json.Marshal(arguments)
}

func (d *dialogue) addResult(m incoming, text string) error {
	if !d.open[m.ToolCallID] {
		return problem("tool_call_id", "is that of no call before it that has no result yet")
	}
	delete(d.open, m.ToolCallID)
	value, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return d.record("", event.ToolResult{ToolCallID: m.ToolCallID, Value: value})
}

// partsOf are the parts of a content; a text is one.
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

// split parts the text of a message from what is attached to it.
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
			return "", nil, problem(fmt.Sprintf("content.%d.type", i), "want text; only a user attaches something")
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
		return event.FileAttachment{}, problem("file.file_data", "missing; what a file_id stands for is not in the file")
	case p.Type == partImage || p.Type == partAudio || p.Type == partFile:
		return event.FileAttachment{}, problem(p.Type, "missing")
	default:
		return event.FileAttachment{}, problem("type", "want %s, %s, %s or %s, got %q",
			partText, partImage, partAudio, partFile, event.Redact(p.Type, 64))
	}
}

// inline is the attachment in the data URL of a field.
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

// imageTypeOf is the media type of an image by its URL. It has to be one that
// models read; which of them is not important, as the model fetches the image.
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

// within says in which field the field of an error is.
func within(outer string, err error) error {
	var fe *event.FieldError
	if !errors.As(err, &fe) || fe.Tag != "" {
		return err
	}
	return problem(strings.TrimSuffix(outer+"."+fe.Field, "."), "%s", fe.Problem)
}

// wrongType says in our words that a field is of the wrong type.
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
