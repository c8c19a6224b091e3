package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

const ( // in bytes of JSON
	maxMetadata      = 16 << 10
	maxMetadataValue = 4 << 10
)

func metadataOf(e event.Event) json.RawMessage {
	fields := e.Extra
	if call, ok := e.Body.(event.ToolCall); ok && call.MessageID != "" && call.RequestID == "" {
		fields = maps.Clone(fields)
		if fields == nil {
			fields = map[string]json.RawMessage{}
		}
		fields["messageId"] = encode(call.MessageID)
	}
	if len(fields) == 0 {
		return nil
	}
	kept := map[string]json.RawMessage{}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "sourceTimestamp" || name == "status" {
			continue
		}
		value := shortened(valid(fields[name]))
		if size += len(name) + len(value); size > maxMetadata {
			break
		}
		kept[name] = value
	}
	if len(kept) == 0 {
		return nil
	}
	return encode(kept)
}

// shortened truncates a long value, as a text.
func shortened(value json.RawMessage) json.RawMessage {
	if len(value) <= maxMetadataValue {
		return value
	}
	text, ok := stringOf(value)
	if !ok {
		text = string(value)
	}
	// JSON escapes take up to six bytes per byte.
	for kept := min(len(text), maxMetadataValue); ; kept /= 2 {
		cut := encode(fmt.Sprintf("%s… (%d bytes omitted)", strings.ToValidUTF8(text[:kept], ""), len(text)-kept))
		if len(cut) <= maxMetadataValue {
			return cut
		}
	}
}
