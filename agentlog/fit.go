package agentlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxEventBytes is the longest JSON of an event. Any context takes that much,
// whether it has a blob store or not.
const MaxEventBytes = 1 << 20

// maxKept and minKept bound what is kept of a text that is cut.
const (
	maxKept = MaxEventBytes / 2
	minKept = 1 << 10
)

// fit is the event as a context records it: valid, in its one form, and no longer
// than MaxEventBytes.
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

// shorten cuts the longest texts of an event, and no more of them than it must.
// What is long for other reasons becomes a text first.
func shorten(data []byte) ([]byte, error) {
	least, err := shortenTo(data, minKept, false)
	flat := len(least) > MaxEventBytes
	for keep := maxKept; err == nil && keep >= minKept; keep /= 2 {
		var short []byte
		if short, err = shortenTo(data, keep, flat); err == nil && len(short) <= MaxEventBytes {
			return short, nil
		}
	}
	return nil, cmp.Or(err, fmt.Errorf("%d bytes, of which no text can be cut", len(data)))
}

// shortenTo cuts each text to about as many bytes as are kept; flat makes texts of
// objects and arrays.
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

// flatten makes a text of an object or array.
func flatten(value any) any {
	switch value.(type) {
	case map[string]any, []any:
		if data, err := encode(value); err == nil {
			return string(data)
		}
	}
	return value
}

// cut cuts the texts in a value to about as many bytes as are kept.
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

// cutText cuts a text in its middle: what a command printed last says how it ended.
func cutText(text string, keep int) string {
	if len(text) <= keep {
		return text
	}
	head, tail := text[:keep/2], text[len(text)-keep/2:]
	return fmt.Sprintf("%s\n[%d of %d bytes are left out here]\n%s",
		strings.ToValidUTF8(head, ""), len(text)-len(head)-len(tail), len(text), strings.ToValidUTF8(tail, ""))
}

// encode writes JSON without the escapes that only HTML needs.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
