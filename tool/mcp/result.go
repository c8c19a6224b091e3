package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// valueOf returns the text or structured value of a result, without the server's secrets. If the tool failed, the
// error contains its message.
func (s *server) valueOf(result *sdk.CallToolResult, known *secrets) (any, error) {
	raw := json.RawMessage(result.Content[0].(*sdk.TextContent).Text) // see [wire.result]
	var fields struct{ Content, StructuredContent, IsError, ResultType json.RawMessage }
	if !isObject(raw) || json.Unmarshal(raw, &fields) != nil {
		fields.Content = raw
	}
	if textIn(fields.ResultType) == "input_required" {
		return nil, errors.New("the tool asks for input, which this client cannot give")
	}
	isStructured := !isEmpty(fields.StructuredContent)
	b := blocks{isOnlyText: true}
	b.addAll(fields.Content)
	if !isObject(raw) || b.isOdd || isEmpty(fields.Content) && !isStructured {
		s.quirk(quirkContent)
	}
	text := known.scrub(strings.Join(b.parts, "\n"))
	var structured any
	if isStructured {
		decoder := json.NewDecoder(strings.NewReader(string(fields.StructuredContent)))
		decoder.UseNumber()
		if err := decoder.Decode(&structured); err != nil {
			return nil, fmt.Errorf("the structured content cannot be decoded: %w", err)
		}
		structured = known.scrubAll(structured)
	}
	isError := isTrue(fields.IsError)
	switch {
	case isError && text != "":
		return nil, errors.New(text)
	case isError && isStructured:
		return nil, errors.New(string(encoded(structured)))
	case isError:
		return nil, errors.New("the tool failed without a message")
	case !isStructured:
		return text, nil
	case b.isOnlyText:
		return structured, nil // servers should send the same value as text, so the text is omitted
	}
	return text + "\n" + string(encoded(structured)), nil
}

// blocks is the content of a result as text; models receive notes in place of media.
type blocks struct {
	parts      []string
	isOnlyText bool
	isOdd      bool // not as specified
}

func (b *blocks) addAll(content json.RawMessage) {
	var all []json.RawMessage
	if !isEmpty(content) && json.Unmarshal(content, &all) != nil {
		b.isOdd = true
		all = []json.RawMessage{content}
	}
	for _, block := range all {
		b.add(block)
	}
}

func (b *blocks) add(raw json.RawMessage) {
	var block struct {
		Type, Text, Data, MIMEType, Resource json.RawMessage
		URI, Name, Description               json.RawMessage
	}
	if !isObject(raw) || json.Unmarshal(raw, &block) != nil {
		b.isOdd = true
		if text := textIn(raw); text != "" {
			b.parts = append(b.parts, text)
		}
		return
	}
	kind, part := textIn(block.Type), ""
	switch {
	case kind == "text", kind == "" && block.Text != nil:
		b.isOdd = b.isOdd || kind == ""
		b.parts = append(b.parts, textIn(block.Text))
		return
	case (kind == "image" || kind == "audio") && block.Data != nil:
		part = fmt.Sprintf("[%s %s, %d bytes, not shown]", kind, clean(textIn(block.MIMEType), 100), sizeOf(textIn(block.Data)))
	case kind == "resource_link" && block.URI != nil:
		part = "[resource " + clean(textIn(block.URI), 1000)
		for _, field := range []json.RawMessage{block.Name, block.MIMEType, block.Description} {
			if text := textIn(field); text != "" {
				part += ", " + clean(text, 1000)
			}
		}
		part += "]"
	case kind == "resource" && isObject(block.Resource):
		part = resourceText(block.Resource)
	default:
		b.isOdd = true
		part = fmt.Sprintf("[content of an unknown type, as JSON]\n%s", raw)
	}
	b.isOnlyText = false
	b.parts = append(b.parts, part)
}

func resourceText(raw json.RawMessage) string {
	var r struct{ URI, MIMEType, Text, Blob json.RawMessage }
	_ = json.Unmarshal(raw, &r)
	uri := clean(textIn(r.URI), 1000)
	if r.Blob != nil {
		return fmt.Sprintf("[resource %s, %s, %d bytes, not shown]", uri, clean(textIn(r.MIMEType), 100), sizeOf(textIn(r.Blob)))
	}
	return fmt.Sprintf("[resource %s]\n%s", uri, textIn(r.Text))
}

func sizeOf(encoded string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(encoded, "=")))
}
