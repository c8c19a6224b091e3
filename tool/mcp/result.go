package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// valueOf returns the text or structured value of a result, without the server's secrets. If the
// tool failed, the error contains its message.
func valueOf(result *sdk.CallToolResult, known *secrets) (any, error) {
	text, hasOnlyText := textOf(result.Content)
	text = known.scrub(text)
	switch {
	case result.IsError && text == "":
		return nil, errors.New("the tool failed without a message")
	case result.IsError:
		return nil, errors.New(text)
	case result.StructuredContent == nil:
		return text, nil
	}
	value := result.StructuredContent
	if hasOnlyText {
		if value = withDigits(result); !mayBeRounded(value) {
			return known.scrubAll(value), nil // servers should send the same value as text, so the text is omitted
		}
	}
	encoded, err := json.Marshal(known.scrubAll(value))
	if err != nil {
		return nil, fmt.Errorf("the result cannot be encoded as JSON: %w", err)
	}
	parts := []string{text, string(encoded)}
	if mayBeRounded(value) {
		parts = append(parts, "[Integers above 2^53 in this JSON may be rounded.]")
	}
	return strings.TrimPrefix(strings.Join(parts, "\n"), "\n"), nil
}

// withDigits returns the structured value of a result. The SDK rounds numbers, so if the text is the
// JSON of the value, as servers should send it, the numbers are those of the text. Remove this
// when a release of the SDK fixes https://github.com/modelcontextprotocol/go-sdk/issues/1236.
func withDigits(result *sdk.CallToolResult) any {
	if len(result.Content) != 1 {
		return result.StructuredContent
	}
	text := result.Content[0].(*sdk.TextContent).Text
	var rounded, exact any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if json.Unmarshal([]byte(text), &rounded) == nil && reflect.DeepEqual(rounded, result.StructuredContent) && decoder.Decode(&exact) == nil {
		return exact
	}
	return result.StructuredContent
}

// mayBeRounded reports whether the SDK may have rounded an integer in a decoded JSON value.
func mayBeRounded(value any) bool {
	switch value := value.(type) {
	case float64:
		return math.Abs(value) >= 1<<53
	case []any:
		return slices.ContainsFunc(value, mayBeRounded)
	case map[string]any:
		for _, field := range value {
			if mayBeRounded(field) {
				return true
			}
		}
	}
	return false
}

// textOf returns the blocks of a result as text; models receive notes in place of other media.
func textOf(blocks []sdk.Content) (text string, isOnlyText bool) {
	var parts []string
	isOnlyText = true
	for _, block := range blocks {
		part := ""
		switch block := block.(type) {
		case *sdk.TextContent:
			parts = append(parts, block.Text)
			continue
		case *sdk.ImageContent:
			part = mediaNote("image", block.MIMEType, len(block.Data))
		case *sdk.AudioContent:
			part = mediaNote("audio", block.MIMEType, len(block.Data))
		case *sdk.ResourceLink:
			part = linkNote(block)
		case *sdk.EmbeddedResource:
			part = resourceText(block.Resource)
		default:
			part = "[content of an unknown type, not shown]"
		}
		isOnlyText = false
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n"), isOnlyText
}

func mediaNote(kind, mimeType string, size int) string {
	return fmt.Sprintf("[%s %s, %d bytes, not shown]", kind, clean(mimeType, 100), size)
}

func linkNote(link *sdk.ResourceLink) string {
	note := "[resource " + clean(link.URI, 1000)
	for _, part := range []string{link.Name, link.MIMEType, link.Description} {
		if part != "" {
			note += ", " + clean(part, 1000)
		}
	}
	return note + "]"
}

func resourceText(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return "[empty resource]"
	case r.Blob != nil:
		return fmt.Sprintf("[resource %s, %s, %d bytes, not shown]", clean(r.URI, 1000), clean(r.MIMEType, 100), len(r.Blob))
	}
	return fmt.Sprintf("[resource %s]\n%s", clean(r.URI, 1000), r.Text)
}
