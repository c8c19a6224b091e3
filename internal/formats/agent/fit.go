package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxEventBytes is the maximum length of an event as JSON. Any context accepts that
// much from a client with a blob store.
const MaxEventBytes = 1 << 20

// The length of a truncated text, in bytes.
const (
	maxKept = MaxEventBytes / 2
	minKept = 1 << 10
)

// fit returns the event in canonical form, truncated to MaxEventBytes.
func fit(e event.Event) (event.Event, error) {
	data, err := e.MarshalJSON()
	if err == nil && len(data) > MaxEventBytes {
		data, err = shorten(data)
	}
	if err != nil {
		return event.Event{}, err
	}
	var fitting event.Event
	err = fitting.UnmarshalJSON(data)
	return fitting, err
}

// shorten truncates the longest texts of an event. It halves their maximum length until the event
// fits. If truncating texts cannot suffice, it first converts objects and arrays to text.
func shorten(data []byte) ([]byte, error) {
	least, err := shortenTo(data, minKept, false)
	flat := len(least) > MaxEventBytes
	for keep := maxKept; err == nil && keep >= minKept; keep /= 2 {
		var short []byte
		if short, err = shortenTo(data, keep, flat); err == nil && len(short) <= MaxEventBytes {
			return short, nil
		}
	}
	return nil, cmp.Or(err, fmt.Errorf("event has %d bytes and no text to truncate", len(data)))
}

// shortenTo truncates each text to about keep bytes. flat converts objects and
// arrays to text first.
func shortenTo(data []byte, keep int, flat bool) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	for name, value := range fields {
		if flat {
			value = flatten(value)
		}
		fields[name] = cut(value, keep)
	}
	return encode(fields)
}

func flatten(value any) any {
	switch value.(type) {
	case map[string]any, []any:
		if data, err := encode(value); err == nil {
			return string(data)
		}
	}
	return value
}

func cut(value any, keep int) any {
	switch value := value.(type) {
	case string:
		return cutText(value, keep)
	case json.Number:
		if len(value) > keep {
			return cutText(value.String(), keep)
		}
	case map[string]any:
		for name := range value {
			value[name] = cut(value[name], keep)
		}
	case []any:
		for i := range value {
			value[i] = cut(value[i], keep)
		}
	}
	return value
}

// cutText removes the middle of a text: the end of command output shows its result.
func cutText(text string, keep int) string {
	if len(text) <= keep {
		return text
	}
	head, tail := text[:keep/2], text[len(text)-keep/2:]
	return fmt.Sprintf("%s\n[%d of %d bytes omitted]\n%s",
		strings.ToValidUTF8(head, ""), len(text)-len(head)-len(tail), len(text), strings.ToValidUTF8(tail, ""))
}

func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
