package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

// ReadResult names the tool with which models read results above [MaxResult]. A [Set] always
// offers it with other tools: a changed list of tools would invalidate the provider's prompt cache.
const ReadResult = event.ToolReadResult

const (
	maxStoredBytes = 16 << 20    // of a result
	storeTimeout   = time.Minute // of storing or reading a result
	defaultLimit   = 16_000      // bytes that ReadResult returns at once
	maxLimit       = 24_000
)

// bounded returns a value as JSON. A value above the tool's maximum is stored and abridged.
func (s *Set) bounded(ctx context.Context, t Tool, value any) (json.RawMessage, error) {
	encoded, text, err := encode(value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the result cannot be encoded as JSON: %w", err)
	case len(text) > maxStoredBytes:
		return nil, fmt.Errorf("the result has %d bytes (at most %d)", len(text), maxStoredBytes)
	case len(text) <= t.maxResult:
		return encoded, nil
	}
	// Redact before storing: CallTool redacts only the abridged text, in which it cannot recognize the
	// fields of an object.
	if encoded, err = event.RedactJSON(encoded); err == nil {
		_, text, err = encode(encoded)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the result cannot be encoded as JSON: %w", err)
	case len(text) <= t.maxResult:
		return encoded, nil
	}
	ref, err := store(ctx, text)
	if err != nil {
		s.options.Logger.WarnContext(ctx, "cannot store the result of a tool; the model receives parts of it",
			"tool", t.spec.Canonical, "context", ContextName(ctx), "error", err)
	}
	return marshal(abridged(text, ref, t.maxResult))
}

// encode returns a value as JSON, and the text that models read.
func encode(value any) (encoded json.RawMessage, text string, err error) {
	if raw, ok := value.(json.RawMessage); ok && !json.Valid(raw) {
		return nil, "", errors.New("invalid JSON")
	}
	if s, ok := value.(string); ok {
		value = strings.ToValidUTF8(s, "\uFFFD")
	}
	if encoded, err = marshal(value); err != nil {
		return nil, "", err
	}
	if json.Unmarshal(encoded, &text) == nil && encoded[0] == '"' {
		return encoded, text, nil
	}
	return encoded, string(encoded), nil
}

func marshal(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// store returns the digits of the reference to a text; "" without a store.
func store(ctx context.Context, text string) (string, error) {
	to := callOf(ctx).blobs
	if to == nil {
		return "", nil
	}
	// The function has returned, so a cancellation no longer matters.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	ref, err := to.Put(ctx, []byte(event.StoredResultHeader+text))
	return strings.TrimPrefix(string(ref), event.BlobPrefix), err
}

// abridged returns the beginning and the end of a text, at most max bytes in total, and how to read
// the rest. Empty ref: the rest is lost.
func abridged(text, ref string, max int) string {
	note := func(head, tail int) string {
		return event.AbridgedNote(len(text), head, len(text)-tail, ref)
	}
	room := max - len(note(len(text), 0))
	head := text[:boundary(text, room*3/4)]
	tail := text[boundary(text, len(text)-room/4+utf8.UTFMax):]
	return head + note(len(head), len(tail)) + tail
}

// boundary returns the largest offset up to i at which a character begins.
func boundary(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return min(i, len(text))
}

type readResultInput struct {
	Ref    string `json:"ref" jsonschema:"the ref in the shortened result"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first byte to read; default 0"`
	Limit  int    `json:"limit,omitempty" jsonschema:"the number of bytes to read; default 16000, at most 24000"`
}

func readResult() Tool {
	return Must(New(ReadResult, "Read a part of a tool result that was too large to be shown as a whole.",
		readPart, Idempotent(), Attempts(3), MaxResult(MaxMaxResult)))
}

func readPart(ctx context.Context, in readResultInput) (string, error) {
	if in.Limit == 0 {
		in.Limit = defaultLimit
	}
	if in.Limit < 1 || in.Limit > maxLimit {
		return "", fmt.Errorf("limit %d is out of range (1 to %d)", in.Limit, maxLimit)
	}
	text, err := stored(ctx, in.Ref)
	if err != nil {
		return "", err
	}
	if in.Offset < 0 || in.Offset >= len(text) {
		return "", fmt.Errorf("offset %d is out of range (0 to %d)", in.Offset, len(text)-1)
	}
	from := boundary(text, in.Offset)
	to := boundary(text, from+max(in.Limit, utf8.UTFMax))
	return text[from:to] + fmt.Sprintf("\n\n[bytes %d to %d of %d]", from, to, len(text)), nil
}

func stored(ctx context.Context, ref string) (string, error) {
	from := callOf(ctx).blobs
	if from == nil {
		return "", errors.New("this worker has no store for results")
	}
	parsed, err := blobs.ParseRef(event.BlobPrefix + strings.TrimPrefix(ref, event.BlobPrefix))
	if err != nil {
		return "", fmt.Errorf("ref: %w (copy it from the shortened result)", err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	data, err := from.Get(ctx, parsed)
	text, isResult := strings.CutPrefix(string(data), event.StoredResultHeader)
	switch {
	case errors.Is(err, blobs.ErrNotFound) || err == nil && !isResult:
		return "", errors.New("no result has this ref (copy it from the shortened result)")
	case errors.Is(err, blobs.ErrUnavailable):
		return "", Retryable(errors.New("the store of results is unavailable"))
	case err != nil:
		return "", fmt.Errorf("the result cannot be read: %w", err)
	}
	return text, nil
}
