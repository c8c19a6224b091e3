package chat

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func writeOpenAI(w *bufio.Writer, log iter.Seq2[event.Event, error], blobs Blobs) error {
	c, err := conversationOf(log)
	if err != nil {
		return err
	}
	t := openAIWriter{conversation: c, model: modelOf(c.messages), blobs: blobs, w: w}
	if err := t.begin(); err != nil {
		return err
	}
	for _, m := range c.messages {
		if err := t.add(m); err != nil {
			return err
		}
	}
	if err := t.finishResults(); err != nil {
		return err
	}
	_, err = w.WriteString("]}\n")
	return err
}

// modelOf returns the newest OpenRouter model with provider state; "" for none.
func modelOf(messages []reducer.Message) string {
	for _, m := range slices.Backward(messages) {
		if s := m.ProviderState; s != nil && isDetails(s, s.Model) && detailsOf(s) != nil {
			return s.Model
		}
	}
	return ""
}

func isDetails(s *event.ProviderState, model string) bool {
	return s != nil && s.ProviderID == openRouter && s.BaseURL == openRouterURL && s.Model == model
}

func detailsOf(s *event.ProviderState) json.RawMessage {
	var data struct {
		Details json.RawMessage `json:"reasoning_details"`
	}
	if json.Unmarshal(s.Data, &data) != nil {
		return nil
	}
	return data.Details
}

type openAIWriter struct {
	conversation
	model string
	blobs Blobs
	w     *bufio.Writer
	count int // of messages written
	// open holds the calls of the newest answer that have no result yet.
	open []string
	// strays holds results without a call; they are written once open is complete.
	strays []string
}

// begin writes the document up to its first message.
func (t *openAIWriter) begin() error {
	head, err := json.Marshal(document{Model: t.model, Messages: []message{}})
	if err == nil {
		_, err = t.w.Write(bytes.TrimSuffix(head, []byte("]}")))
	}
	return err
}

func (t *openAIWriter) write(m message) error {
	if t.count++; t.count > 1 {
		if err := t.w.WriteByte(','); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		return err
	}
	_, err := t.w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	return err
}

func (t *openAIWriter) add(m reducer.Message) error {
	if m.Role == reducer.RoleTool {
		return t.addResult(m)
	}
	if err := t.finishResults(); err != nil {
		return err
	}
	var err error
	if m.Attachments, err = resolved(m, t.blobs); err != nil {
		return err
	}
	out := message{Role: string(m.Role), Content: contentOf(m), Reasoning: t.reasoning[m.EventID]}
	if isDetails(m.ProviderState, t.model) {
		out.Details = detailsOf(m.ProviderState)
	}
	for _, call := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, toolCall{
			ID: call.ID, Type: typeFunction, Function: function{Name: call.Name, Arguments: cmp.Or(call.Arguments, noArguments)},
		})
		t.open = append(t.open, call.ID)
	}
	if len(out.ToolCalls) > 0 && m.Content == "" {
		out.Content = nil
	}
	return t.write(out)
}

func (t *openAIWriter) addResult(m reducer.Message) error {
	i := slices.Index(t.open, m.ToolCallID)
	if i < 0 {
		t.strays = append(t.strays, "[Result of a tool call that is not part of this conversation: "+m.Content+"]")
		return nil
	}
	t.open = slices.Delete(t.open, i, i+1)
	return t.write(message{Role: string(reducer.RoleTool), Content: m.Content, ToolCallID: m.ToolCallID})
}

// finishResults adds a placeholder result for each open call, then the stray results.
func (t *openAIWriter) finishResults() error {
	var out []message
	for _, id := range t.open {
		out = append(out, message{Role: string(reducer.RoleTool), Content: event.OutcomeUnknown, ToolCallID: id})
	}
	for _, text := range t.strays {
		out = append(out, message{Role: string(reducer.RoleUser), Content: text})
	}
	t.open, t.strays = nil, nil
	for _, m := range out {
		if err := t.write(m); err != nil {
			return err
		}
	}
	return nil
}

// contentOf returns a plain string if there is only text, because every server
// accepts that. Otherwise it returns parts, the text first.
func contentOf(m reducer.Message) any {
	if len(m.Attachments) == 0 {
		return m.Content
	}
	var texts []string
	if strings.TrimSpace(m.Content) != "" {
		texts = append(texts, m.Content)
	}
	var parts []part
	afterNote := false
	for _, a := range m.Attachments {
		p, ok := partOf(a)
		if ok {
			parts = append(parts, p)
			continue
		}
		text, isNote := textOf(a)
		if isNote && afterNote {
			texts[len(texts)-1] += "\n" + text
		} else {
			texts = append(texts, text)
		}
		afterNote = isNote
	}
	text := strings.Join(texts, betweenTexts)
	switch {
	case len(parts) == 0:
		return text
	case text == "":
		return parts
	default:
		return slices.Insert(parts, 0, part{Type: partText, Text: text})
	}
}

func partOf(a reducer.Attachment) (p part, ok bool) {
	media, data := event.MediaOf(a.MediaType), bytesOf(a.Source)
	switch {
	case media == event.MediaImage && isLink(a.Source):
		return part{Type: partImage, ImageURL: &imageURL{URL: a.Source.URL}}, true
	case len(data) == 0:
		return part{}, false
	case media == event.MediaImage:
		return part{Type: partImage, ImageURL: &imageURL{URL: dataURL(a.MediaType, data)}}, true
	case media == event.MediaAudio:
		return part{Type: partAudio, InputAudio: &inputAudio{
			Data: base64.StdEncoding.EncodeToString(data), Format: audioFormat(a.MediaType),
		}}, true
	case media == event.MediaPDF:
		return part{Type: partFile, File: &file{
			Filename: cmp.Or(a.FileName, "document.pdf"), FileData: dataURL(a.MediaType, data),
		}}, true
	default:
		return part{}, false
	}
}

// textOf returns the content of a text file, or a note about any other file.
func textOf(a reducer.Attachment) (text string, isNote bool) {
	data := bytesOf(a.Source)
	if event.MediaOf(a.MediaType) != event.MediaText || len(data) == 0 || !utf8.Valid(data) {
		return head(a), true
	}
	return head(a) + "\n" + string(data), false
}

func head(a reducer.Attachment) string { return "[Attached: " + nameOf(a) + "]" }

func bytesOf(s event.Source) []byte {
	if s.Type != event.SourceURL {
		return s.Data
	}
	_, data, err := event.DecodeDataURL(s.URL)
	if err != nil {
		return nil
	}
	return data
}

func isLink(s event.Source) bool {
	return s.Type == event.SourceURL && !strings.HasPrefix(s.URL, "data:")
}

func dataURL(mediaType string, data []byte) string {
	return "data:" + event.BareMediaType(mediaType) + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func audioFormat(mediaType string) string {
	if strings.Contains(event.BareMediaType(mediaType), "wav") {
		return audioWAV
	}
	return audioMP3
}
