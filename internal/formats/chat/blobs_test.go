package chat_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

// files are the bytes of references.
type files map[string][]byte

func (f files) add(data []byte) (ref string) {
	ref = event.RefOf(data)
	f[ref] = data
	return ref
}

func (f files) read(ref string) ([]byte, error) { return f[ref], nil }

func (f files) attach(mediaType, name, data string) event.Event {
	return event.New(event.FileAttachment{
		Source:    event.Source{Type: event.SourceBlob, Ref: f.add([]byte(data))},
		MediaType: mediaType, FileName: name, Size: int64(len(data)),
	})
}

// result is an abridged tool result.
func (f files) result(t require.TestingT, text string) event.Event {
	ref := f.add([]byte(event.StoredResultHeader + text))
	abridged := text[:10] + event.AbridgedNote(len(text), 10, len(text)-5, strings.TrimPrefix(ref, "sha256/")) + text[len(text)-5:]
	value, err := json.Marshal(abridged)
	require.NoError(t, err)
	return event.New(event.ToolResult{ToolCallID: "c", Value: value})
}

func (f files) log(t require.TestingT) []event.Event {
	return dense(
		f.attach("image/png", "quay.png", "PNG of a quay"), f.attach("audio/wav", "bell.wav", "RIFF of a bell"),
		f.attach("application/pdf", "tides.pdf", "PDF of tides"), f.attach("text/plain", "berths.txt", "berth 7\n```\nberth 8"),
		event.New(event.UserMessage{Content: "What is this?"}),
		event.New(event.AssistantMessage{Content: "I look."}),
		event.New(event.ToolCall{ToolCallID: "c", ToolName: "tides", Parameters: json.RawMessage(`{}`)}),
		f.result(t, strings.Repeat("high water at nine. ", 50)),
	)
}

func writeWith(t require.TestingT, format chat.Format, f files, log ...event.Event) string {
	var out bytes.Buffer
	_, err := chat.Write(&out, format, logOf(log...), f.read)
	require.NoError(t, err)
	return out.String()
}

func TestJSONLinesCarryTheBytesOfReferences(t *testing.T) {
	f := files{}
	log := read(t, write(t, chat.JSONL, f.log(t)...), "demo") // with times
	plain := write(t, chat.JSONL, log...)
	written := writeWith(t, chat.JSONL, f, log...)
	for _, data := range f {
		require.Contains(t, written, base64.StdEncoding.EncodeToString(data))
		require.NotContains(t, plain, base64.StdEncoding.EncodeToString(data))
	}
	require.Contains(t, written, `"source":{"type":"blob","data":"`+base64.StdEncoding.EncodeToString([]byte("PNG of a quay"))+`"}`)
	require.Equal(t, strings.Count(plain, "\n"), strings.Count(written, "\n"), "each line is an event")

	carried := files{}
	var restored []event.Event
	for _, e := range read(t, written, "demo") {
		without, data, err := e.TakeBlob()
		require.NoError(t, err)
		if data != nil {
			carried.add(data)
		}
		restored = append(restored, without)
	}
	require.Equal(t, f, carried)
	require.Equal(t, plain, write(t, chat.JSONL, restored...))
	require.Equal(t, written, write(t, chat.JSONL, read(t, written, "demo")...))
	require.Equal(t, plain, writeWith(t, chat.JSONL, files{}, log...), "missing bytes leave references")
}

func TestOpenAIMessagesCarryTheBytesOfReferences(t *testing.T) {
	f := files{}
	written := writeWith(t, chat.OpenAI, f, f.log(t)...)
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for _, part := range []string{
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + encoded("PNG of a quay") + `"}}`,
		`{"type":"input_audio","input_audio":{"data":"` + encoded("RIFF of a bell") + `","format":"wav"}}`,
		`{"type":"file","file":{"filename":"tides.pdf","file_data":"data:application/pdf;base64,` + encoded("PDF of tides") + `"}}`,
		"\\nberth 7\\n```\\nberth 8",
	} {
		require.Contains(t, written, part)
	}
	var kept []string
	for _, e := range read(t, written, "copy") {
		if file, ok := e.Body.(event.FileAttachment); ok {
			kept = append(kept, string(file.Source.Data))
		}
	}
	require.Equal(t, []string{"PNG of a quay", "RIFF of a bell", "PDF of tides"}, kept)
}

func TestMarkdownShowsTheFiles(t *testing.T) {
	f := files{}
	written := writeWith(t, chat.Markdown, f, f.log(t)...)
	for _, text := range []string{
		"quay.png (blob), image/png, 13 bytes` ![image](data:image/png;base64,", "[file](data:audio/wav;base64,", "[file](data:application/pdf;base64,",
		"- Attached: `berths.txt (blob), text/plain, 19 bytes`\n", "\nContent of `berths.txt (blob)`:\n\n````\nberth 7\n```\nberth 8\n````\n",
	} {
		require.Contains(t, written, text)
	}
	require.NotContains(t, write(t, chat.Markdown, f.log(t)...), "base64")
}

func TestReferencesWithoutTheirBytesAreCounted(t *testing.T) {
	f := files{}
	image := f.attach("image/png", "a.png", "PNG")
	other := f.attach("image/png", "b.png", "PNG of a quay")
	named := other
	named.Extra = map[string]json.RawMessage{"blobRef": json.RawMessage(`"mine"`)}
	noHeader := f.add([]byte("no stored result"))
	text := strings.Repeat("x", 40)
	value, err := json.Marshal(text[:9] + event.AbridgedNote(40, 9, 31, strings.TrimPrefix(noHeader, "sha256/")) + text[31:])
	require.NoError(t, err)
	result := event.New(event.ToolResult{ToolCallID: "c", Value: value})
	for name, c := range map[string]struct {
		log  []event.Event
		read chat.Blobs
		want map[chat.Format]int
	}{
		"all bytes":           {[]event.Event{image, other}, f.read, map[chat.Format]int{}},
		"no blobs":            {[]event.Event{image, other}, nil, map[chat.Format]int{chat.JSONL: 2, chat.OpenAI: 2, chat.Markdown: 2}},
		"missing bytes":       {[]event.Event{image, other}, files{}.read, map[chat.Format]int{chat.JSONL: 2, chat.OpenAI: 2, chat.Markdown: 2}},
		"metadata of a name":  {[]event.Event{image, named}, f.read, map[chat.Format]int{chat.JSONL: 1}},
		"no result in a blob": {[]event.Event{result}, f.read, map[chat.Format]int{chat.JSONL: 1}},
	} {
		for _, format := range chat.Formats() {
			log := dense(append(c.log, event.New(event.UserMessage{Content: "What is this?"}))...)
			left, err := chat.Write(io.Discard, format, logOf(log...), c.read)
			require.NoError(t, err)
			require.Equal(t, c.want[format], left, "%s as %s", name, format)
		}
	}
}

func TestABlobErrorIsReturnedInEveryFormat(t *testing.T) {
	f, gone := files{}, errors.New("gone")
	for _, format := range chat.Formats() {
		_, err := chat.Write(new(bytes.Buffer), format, logOf(f.log(t)...), func(string) ([]byte, error) { return nil, gone })
		require.ErrorIs(t, err, gone, format)
		require.ErrorContains(t, err, "event demo:000", format)
	}
}

func TestALineMayHaveTheLargestFile(t *testing.T) {
	f := files{}
	line := writeWith(t, chat.JSONL, f, dense(f.attach("image/png", "a.png", strings.Repeat("x", event.MaxAttachmentBytes)))...)
	events := read(t, line, "demo")
	_, data, err := events[0].TakeBlob()
	require.NoError(t, err)
	require.Len(t, data, event.MaxAttachmentBytes)
}

func TestOneReferenceIsReadAtATime(t *testing.T) {
	f := files{}
	log := dense(f.attach("image/png", "a", "first"), event.New(event.UserMessage{Content: "a"}), f.attach("image/png", "b", "other"), event.New(event.UserMessage{Content: "b"}))
	for _, format := range chat.Formats() {
		var out bytes.Buffer
		size, reads := 0, 0
		_, err := chat.Write(&out, format, logOf(log...), func(ref string) ([]byte, error) {
			if reads++; reads == 2 {
				size = out.Len()
			}
			return bytes.Repeat([]byte(f[ref]), 1<<20), nil
		})
		require.NoError(t, err)
		require.Equal(t, 2, reads)
		if format != chat.JSONL { // other bytes than those of the reference remain references
			require.Greater(t, size, 1<<20, format)
		}
	}
}

func TestImportedEventsWithIdsMayHaveUnknownFields(t *testing.T) {
	const recorded = `{"_tag":"SetToolsEvent","id":"demo:0001","timestamp":"2026-01-02T15:04:05Z","contextName":"demo","aprove":["*"]}` + "\n"
	require.Equal(t, recorded, write(t, chat.JSONL, read(t, recorded, "demo")...))
}
