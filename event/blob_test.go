package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

// abridged is a tool result of which the first and the last bytes remain.
func abridged(t require.TestingT, text string, head, tail int, digits string) event.Event {
	value, err := json.Marshal(text[:head] + event.AbridgedNote(len(text), head, len(text)-tail, digits) + text[len(text)-tail:])
	require.NoError(t, err)
	return event.New(event.ToolResult{ToolCallID: "c", Value: value})
}

func digitsOf(data string) string { return strings.TrimPrefix(event.RefOf([]byte(data)), "sha256/") }

func TestReferencesAreFound(t *testing.T) {
	text := strings.Repeat("tide <&> \n", 20)
	digits := digitsOf(text)
	require.Equal(t, "sha256/"+digits, abridged(t, text, 30, 7, digits).BlobRef())
	require.Equal(t, "sha256/"+digits, abridged(t, text, 0, 0, digits).BlobRef())
	require.Empty(t, abridged(t, text, 30, 7, "").BlobRef(), "it was not stored")

	note := event.AbridgedNote(200, 30, 193, digits)
	for name, value := range map[string]any{
		"a quoted note":          "The log says: " + note,
		"a note with other text": text[:30] + note + text[193:] + " Done.",
		"a note in an object":    map[string]string{"text": text[:30] + note + text[193:]},
		"huge offsets":           text[:30] + strings.Replace(note, "193", strings.Repeat("9", 40), 1) + text[193:],
	} {
		data, err := json.Marshal(value)
		require.NoError(t, err)
		require.Empty(t, event.New(event.ToolResult{ToolCallID: "c", Value: data}).BlobRef(), name)
	}
	require.Empty(t, event.New(event.UserMessage{Content: note}).BlobRef())
	require.Empty(t, event.New(event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/a.png"}, MediaType: "image/png"}).BlobRef())
}

func TestTheBytesOfAReferenceSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := event.StoredResultHeader + rapid.StringN(1, 50, 200).Draw(t, "text")
		e := eventtest.Event().Draw(t, "event")
		if rapid.Bool().Draw(t, "is a result") {
			e.Body = abridged(t, data, 3, 0, digitsOf(data)).Body
		} else {
			e.Body = event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: event.RefOf([]byte(data))}, MediaType: "text/plain", Size: int64(len(data))}
		}
		before, err := e.MarshalJSON()
		require.NoError(t, err)
		with, ok := e.WithBlob([]byte(data))
		require.True(t, ok)
		require.NoError(t, with.Validate())
		written, err := with.MarshalJSON()
		require.NoError(t, err)
		var read event.Event
		require.NoError(t, read.UnmarshalJSON(written))
		without, taken, err := read.TakeBlob()
		require.NoError(t, err)
		require.Equal(t, data, string(taken))
		after, err := without.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
		unchanged, err := e.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(before), string(unchanged))

		_, ok = e.WithBlob([]byte(data + "!"))
		require.False(t, ok, "other bytes")
		same, taken, err := without.TakeBlob()
		require.NoError(t, err)
		require.Nil(t, taken)
		require.Equal(t, without, same)
	})
}

func TestOnlyStoredResultsAreExportedWithAToolResult(t *testing.T) {
	const other = "another blob"
	e, ok := abridged(t, strings.Repeat("x", 100), 9, 9, digitsOf(other)).WithBlob([]byte(other))
	require.False(t, ok, "a tool could name any blob")
	require.Nil(t, e.Extra)
}

func TestDamagedBytesAreNotTaken(t *testing.T) {
	for _, text := range []string{
		`{"_tag":"FileAttachment","source":{"type":"blob","data":"AAAA"},"mediaType":"image/png","size":3,"blobRef":"sha256/` + hash + `"}`,
	} {
		var e event.Event
		require.NoError(t, e.UnmarshalJSON([]byte(text)))
		_, _, err := e.TakeBlob()
		require.EqualError(t, err, "FileAttachmentEvent.blobRef: the bytes are not those of sha256/"+hash+" (the export is damaged)")
	}
	for _, text := range []string{
		`{"_tag":"FileAttachment","source":{"type":"blob","data":"AAAA"},"mediaType":"image/png","blobRef":7}`,
		`{"_tag":"FileAttachment","source":{"type":"url","url":"https://a.b"},"mediaType":"image/png","blobRef":"sha256/` + hash + `"}`,
		`{"_tag":"ToolResult","toolCallId":"c","value":1,"blob":"AAAA"}`,
		`{"_tag":"UserMessage","content":"a","blob":"AAAA","blobRef":"sha256/` + hash + `"}`,
	} {
		var e event.Event
		require.NoError(t, e.UnmarshalJSON([]byte(text)))
		same, data, err := e.TakeBlob()
		require.NoError(t, err, text)
		require.Nil(t, data)
		require.Equal(t, e, same, "metadata of a sender")
	}
}
