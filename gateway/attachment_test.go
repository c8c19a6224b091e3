package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// attachment returns a file with its bytes inline.
func attachment(mediaType, name, data string) event.FileAttachment {
	return event.FileAttachment{
		Source: event.Source{Type: event.SourceBlob, Data: []byte(data)}, MediaType: mediaType, FileName: name, Size: int64(len(data)),
	}
}

func TestAttachmentsAreInertImagesAudioOrDownloads(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(
		attachment("image/PNG; x=y", "a.png", "PNG"),
		attachment("image/svg+xml", "a.svg", "<svg/>"),
		attachment("text/html", "ä.html", "<script>pwned</script>"),
		attachment("application/pdf", "a.pdf", "PDF"),
		attachment("audio/X-WAV", "a.wav", "WAV"),
		attachment("audio/midi", "a.mid", "MIDI"),
	)}, gateway.Options{})
	for id, want := range map[string]struct{ mediaType, disposition, data string }{
		"demo:0001": {"image/png", "inline; filename=a.png", "PNG"},
		"demo:0002": {"application/octet-stream", "attachment; filename=a.svg", "<svg/>"},
		"demo:0003": {"application/octet-stream", "attachment; filename*=utf-8''%C3%A4.html", "<script>pwned</script>"},
		"demo:0004": {"application/octet-stream", "attachment; filename=a.pdf", "PDF"},
		"demo:0005": {"audio/x-wav", "attachment; filename=a.wav", "WAV"},
		"demo:0006": {"application/octet-stream", "attachment; filename=a.mid", "MIDI"},
	} {
		got := w.do(http.MethodGet, "/contexts/demo/events/"+id+"/attachment", "")
		require.Equal(t, http.StatusOK, got.status, id)
		require.Equal(t, want.data, got.body, id)
		require.Equal(t, want.mediaType, got.header.Get("Content-Type"), id)
		require.Equal(t, want.disposition, got.header.Get("Content-Disposition"), id)
		require.Equal(t, "sandbox; default-src 'none'", got.header.Get("Content-Security-Policy"), id)
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"), id)
		require.Contains(t, got.header.Get("Cache-Control"), "immutable", id)
		require.Equal(t, "Authorization, Cookie", got.header.Get("Vary"), "another person has another file at the same address")
	}
}

func TestEventsWithoutAFileHaveNoAttachment(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(event.UserMessage{Content: "Hi"})}, gateway.Options{})
	for _, id := range []string{"demo:0001", "demo:0002", "other:0001", "x"} {
		got := w.do(http.MethodGet, "/contexts/demo/events/"+id+"/attachment", "")
		require.Equal(t, http.StatusNotFound, got.status, id)
		require.Contains(t, got.body, "Attachment not found", id)
		require.Empty(t, got.header.Get("Content-Disposition"), id)
	}
}
