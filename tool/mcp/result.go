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
	var fields struct {
		Content, StructuredContent json.RawMessage

		IsError    bool
		ResultType string
	}
	err := json.Unmarshal(raw, &fields)
	if !isObject(raw) {
		fields.Content = raw
	}
	if fields.ResultType == "input_required" {
		return nil, errors.New("the tool asks for input, which this client cannot give")
	}
	isStructured := !isEmpty(fields.StructuredContent)
	b := blocks{isOnlyText: true, isOdd: err != nil || isEmpty(fields.Content) && !isStructured}
	b.addAll(fields.Content)
	if b.isOdd {
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
	switch {
	case fields.IsError && text != "":
		return nil, errors.New(text)
	case fields.IsError && isStructured:
		return nil, errors.New(string(encoded(structured)))
	case fields.IsError:
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
	var text string
	switch {
	case isEmpty(content), json.Unmarshal(content, &all) == nil:
	case json.Unmarshal(content, &text) == nil:
		b.isOdd, b.parts = true, []string{text}
	default:
		b.isOdd, all = true, []json.RawMessage{content}
	}
	for _, block := range all {
		b.add(block)
	}
}

func (b *blocks) add(raw json.RawMessage) {
	var block struct {
		Type, Text, Data, MIMEType, URI, Name, Description string

		Resource *struct {
			URI, MIMEType, Text string
			Blob                *string
		}
	}
	err := json.Unmarshal(raw, &block)
	if err == nil && block.Type == "text" {
		b.parts = append(b.parts, block.Text)
		return
	}
	b.isOnlyText = false
	kind, r := block.Type, block.Resource
	var part string
	switch {
	case err == nil && (kind == "image" || kind == "audio") && block.Data != "":
		part = fmt.Sprintf("[%s %s, %d bytes, not shown]", kind, clean(block.MIMEType, 100), sizeOf(block.Data))
	case err == nil && kind == "resource_link" && block.URI != "":
		part = "[resource " + clean(block.URI, 1000)
		for _, text := range []string{block.Name, block.MIMEType, block.Description} {
			if text != "" {
				part += ", " + clean(text, 1000)
			}
		}
		part += "]"
	case err == nil && kind == "resource" && r != nil && r.Blob != nil:
		part = fmt.Sprintf("[resource %s, %s, %d bytes, not shown]", clean(r.URI, 1000), clean(r.MIMEType, 100), sizeOf(*r.Blob))
	case err == nil && kind == "resource" && r != nil:
		part = fmt.Sprintf("[resource %s]\n%s", clean(r.URI, 1000), r.Text)
	default:
		b.isOdd = true
		part = fmt.Sprintf("[content of an unknown type, as JSON]\n%s", raw)
	}
	b.parts = append(b.parts, part)
}

func sizeOf(encoded string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(encoded, "=")))
}
