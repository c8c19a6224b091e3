package chat

import (
	"bufio"
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

func writeOpenAI(w *bufio.Writer, log iter.Seq2[event.Event, error]) error {
	c, err := conversationOf(log)
	if err != nil {
		return err
	}
	t := openAIWriter{conversation: c, model: modelOf(c.messages), out: []message{}}
	for _, m := range c.messages {
		t.add(m)
	}
	t.finishResults()
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document{Model: t.model, Messages: t.out})
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
	out   []message
	// open holds the calls of the newest answer that have no result yet.
	open []string
	// strays holds results without a call; they are written once open is complete.
	strays []string
}

func (t *openAIWriter) add(m reducer.Message) {
	if m.Role == reducer.RoleTool {
		t.addResult(m)
		return
	}
	t.finishResults()
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
	t.out = append(t.out, out)
}

func (t *openAIWriter) addResult(m reducer.Message) {
	i := slices.Index(t.open, m.ToolCallID)
	if i < 0 {
		t.strays = append(t.strays, "[Result of a tool call that is not part of this conversation: "+m.Content+"]")
		return
	}
	t.open = slices.Delete(t.open, i, i+1)
	t.out = append(t.out, message{Role: string(reducer.RoleTool), Content: m.Content, ToolCallID: m.ToolCallID})
}

// finishResults adds a placeholder result for each open call, then the stray results.
func (t *openAIWriter) finishResults() {
	for _, id := range t.open {
		t.out = append(t.out, message{Role: string(reducer.RoleTool), Content: event.OutcomeUnknown, ToolCallID: id})
	}
	for _, text := range t.strays {
		t.out = append(t.out, message{Role: string(reducer.RoleUser), Content: text})
	}
	t.open, t.strays = nil, nil
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
	head := "[Attached: " + nameOf(a) + "]"
	data := bytesOf(a.Source)
	if event.MediaOf(a.MediaType) != event.MediaText || len(data) == 0 || !utf8.Valid(data) {
		return head, true
	}
	return head + "\n" + string(data), false
}

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
