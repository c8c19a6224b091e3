package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// script is a list of messages as events.
type script struct {
	field   string // of the request
	at      string // path of the item that is read
	system  []string
	events  []event.Event
	callIDs map[string]bool // of the calls among the events
}

// inputItem is an item of the input of a response, or a message of a chat.
type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Approval  string          `json:"approval_request_id"`
	Approve   *bool           `json:"approve"`
	Reason    string          `json:"reason"`
	Encrypted string          `json:"encrypted_content"`
	Server    string          `json:"server_label"`
	Error     *string         `json:"error"`

	ToolCallID string     `json:"tool_call_id"` // of chat completions, as below
	ToolCalls  []chatCall `json:"tool_calls"`
}

type chatCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// inputPart is a part of a content.
type inputPart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	Refusal    string          `json:"refusal"`
	ImageURL   json.RawMessage `json:"image_url"` // a URL, or for chat completions an object
	FileData   string          `json:"file_data"`
	FileURL    string          `json:"file_url"`
	FileName   string          `json:"filename"`
	FileID     string          `json:"file_id"`
	File       *inputPart      `json:"file"`
	InputAudio *struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

type imageURL struct {
	URL string `json:"url"`
}

// finder returns an item of an earlier response or conversation; nil: the context that the input is for has it already.
type finder func(path, id string) (*item, error)

// readInput reads a field with a text, or a list of items.
func readInput(field string, raw json.RawMessage, find finder) (*script, error) {
	s := &script{field: field, callIDs: map[string]bool{}}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return s, s.user(mustJSON(text))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, gateway.BadRequest(field, "%s: want a text or a list of items", field)
	}
	var items []inputItem
	if err := decode(field, raw, &items); err != nil {
		return nil, err
	}
	for n, i := range items {
		s.at = fmt.Sprintf("%s[%d]", field, n)
		if i.isReference() {
			referred, err := find(s.at+".id", i.ID)
			if err != nil {
				return nil, err
			}
			if referred == nil {
				continue
			}
			data, _ := json.Marshal(referred) // an item always encodes
			i = inputItem{}
			_ = json.Unmarshal(data, &i) // it has the fields of an item of an input
		}
		if err := s.item(i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// isReference reports whether an item stands for another one. The type of such an item is optional.
func (i inputItem) isReference() bool {
	return i.Type == "item_reference" || i.Type == "" && i.Role == "" && i.ID != ""
}

// readMessages reads the messages of a chat from one to the end.
func readMessages(messages []inputItem, first int) (*script, error) {
	s := &script{field: "messages", callIDs: map[string]bool{}}
	for n, m := range messages[first:] {
		s.at = fmt.Sprintf("messages[%d]", first+n)
		if err := s.message(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *script) item(i inputItem) error {
	switch i.Type {
	case "", "message":
		return s.message(i)
	case "function_call":
		s.call(i.CallID, i.Name, i.Arguments)
	case "function_call_output":
		return s.result(i.CallID, i.Output)
	case "mcp_approval_response":
		id, ok := strings.CutPrefix(i.Approval, approvalPrefix)
		if !ok {
			return gateway.BadRequest(s.field, "approval_request_id %q is unknown in this conversation", event.Redact(i.Approval, 200))
		}
		switch {
		case i.Approve == nil:
			return gateway.BadRequest(s.field, "approve is missing (true or false)")
		case i.Arguments != "":
			return unsupported(s.field, "an approval with other arguments is not supported (see POST /contexts/NAME/events)")
		}
		decision := event.ApprovalDecided{ToolCallID: id, Decision: event.Deny, Reason: i.Reason}
		if *i.Approve {
			decision.Decision, decision.Reason = event.Approve, ""
		}
		s.add(decision)
	case "reasoning":
		if i.Encrypted != "" {
			return unsupported(s.field, "reasoning with encrypted_content is not supported: the context keeps it")
		}
	case "mcp_call":
		s.call(i.ID, toolOf(i.Server, i.Name), i.Arguments)
		if i.Error != nil {
			i.Output = mustJSON(*i.Error)
		}
		return s.result(i.ID, i.Output)
	}
	return nil
}

func (s *script) message(i inputItem) error {
	if i.Name != "" && i.Role != "tool" { // there, the call has it
		return unsupported(s.at+".name", "%s.name is not supported (leave it out)", s.at)
	}
	switch i.Role {
	case "user":
		return s.user(i.Content)
	case "system", "developer":
		text, _, err := readContent(s.at+".content", i.Content)
		s.system = append(s.system, text)
		if err == nil && len(s.events) > 0 {
			err = unsupported(s.field, "a message of the role %s is supported only before all others", i.Role)
		}
		return err
	case "assistant":
		text, _, err := readContent(s.at+".content", i.Content)
		if err != nil {
			return err
		}
		if text != "" || len(i.ToolCalls) == 0 {
			s.add(event.AssistantMessage{Content: text})
		}
		for _, c := range i.ToolCalls {
			s.call(c.ID, c.Function.Name, c.Function.Arguments)
		}
	case "tool":
		return s.result(i.ToolCallID, i.Content)
	default:
		return gateway.BadRequest(s.field, "role %q is invalid (user, assistant, system or developer)", event.Redact(i.Role, 50))
	}
	return nil
}

func (s *script) add(body event.Body) { s.events = append(s.events, event.New(body)) }

func (s *script) user(content json.RawMessage) error {
	text, files, err := readContent(s.at+".content", content)
	if err != nil {
		return err
	}
	for _, f := range files {
		s.add(f)
	}
	s.add(event.UserMessage{Content: text})
	return nil
}

func (s *script) call(id, name, arguments string) {
	s.callIDs[id] = true
	body := event.ToolCall{ToolCallID: id, ToolName: name, Parameters: json.RawMessage(arguments)}
	if !json.Valid(body.Parameters) {
		body.Parameters = mustJSON(arguments)
	}
	s.add(body)
}

func (s *script) result(id string, output json.RawMessage) error {
	text, files, err := readContent(s.at+".output", output)
	if err == nil && len(files) > 0 {
		err = unsupported(s.at+".output", "files in the result of a function are not supported")
	}
	if err != nil {
		return err
	}
	s.add(event.ToolResult{ToolCallID: id, Value: mustJSON(text)})
	return nil
}

// instructions returns the system prompt of a request; nil if it states none.
func (s *script) instructions(given *string) *string {
	texts := slices.Clone(s.system)
	if given != nil {
		texts = append([]string{*given}, texts...)
	}
	if texts == nil {
		return nil
	}
	return new(strings.Join(texts, "\n\n"))
}

// finish makes the newest message the trigger of a turn with the settings. A result that continues a turn needs none.
func (s *script) finish(settings event.RequestSettings, continues bool) error {
	var of *event.RequestSettings
	if !settings.IsZero() {
		of = &settings
	}
	last := len(s.events) - 1
	for i := range s.events {
		if body, ok := s.events[i].Body.(event.UserMessage); ok && i < last {
			body.TriggersTurn = new(false)
			s.events[i].Body = body
		}
	}
	if last < 0 {
		return gateway.BadRequest(s.field, "%s: has no message", s.field)
	}
	switch body := s.events[last].Body.(type) {
	case event.UserMessage:
		body.Settings = of
		s.events[last].Body = body
	case event.ToolResult:
		if !continues {
			s.add(event.AnswerRequested{Settings: of})
		}
	case event.ApprovalDecided:
	default:
		return gateway.BadRequest(s.field, "%s: the last item must be a message of the user, a result or an approval", s.field)
	}
	return nil
}

func (s *script) endsWithResult() bool {
	return len(s.events) > 0 && s.events[len(s.events)-1].Tag() == event.TagToolResult
}

// foreignResult returns the id of a call that has a result in the script, but is not in it; "": there is none.
func (s *script) foreignResult() string {
	for _, e := range s.events {
		if body, ok := e.Body.(event.ToolResult); ok && !s.callIDs[body.ToolCallID] {
			return body.ToolCallID
		}
	}
	return ""
}

// decidedCall returns the id of a call that the script approves or denies; "": there is none.
func (s *script) decidedCall() string {
	for _, e := range s.events {
		if body, ok := e.Body.(event.ApprovalDecided); ok {
			return body.ToolCallID
		}
	}
	return ""
}

// readContent reads a text or a list of parts. Texts are separated by line breaks.
func readContent(path string, raw json.RawMessage) (text string, files []event.FileAttachment, err error) {
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var parts []inputPart
	if isObject(raw) {
		return "", nil, gateway.BadRequest(path, "%s: want a text or a list of parts", path)
	}
	if err := decode(path, raw, &parts); err != nil {
		return "", nil, err
	}
	var texts []string
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch p.Type {
		case "text", "input_text", "output_text", "summary_text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		case "":
			return "", nil, gateway.BadRequest(at+".type", "%s.type is missing", at)
		default:
			file, err := p.attachment(at)
			if err != nil {
				return "", nil, err
			}
			files = append(files, file)
		}
	}
	return strings.Join(texts, "\n"), files, nil
}

func (p inputPart) attachment(at string) (event.FileAttachment, error) {
	if p.File != nil {
		p.File.Type, p = "file", *p.File
	}
	if p.InputAudio != nil {
		p.FileData, p.FileName = "data:audio/"+p.InputAudio.Format+";base64,"+p.InputAudio.Data, "audio."+p.InputAudio.Format
	}
	url, isImage := p.FileURL+p.FileData, len(p.ImageURL) > 0
	if isImage && json.Unmarshal(p.ImageURL, &url) != nil {
		var image imageURL
		if err := decode(at+".image_url", p.ImageURL, &image); err != nil {
			return event.FileAttachment{}, err
		}
		url = image.URL
	}
	switch {
	case p.FileID != "":
		return event.FileAttachment{}, unsupported(at+".file_id", "files by id are not supported (send the bytes or a URL)")
	case url == "":
		return event.FileAttachment{}, gateway.BadRequest(at, "%s: the part has no file", at)
	}
	file, err := thread.Attach(p.FileName, "", url)
	if file.MediaType == "" {
		file.MediaType = map[bool]string{true: "image/jpeg", false: "application/pdf"}[isImage]
	}
	return file, err
}

func mustJSON(text string) json.RawMessage {
	data, _ := json.Marshal(text) // a string always encodes
	return data
}
