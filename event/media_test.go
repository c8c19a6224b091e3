package event_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestMediaOf(t *testing.T) {
	for mediaType, want := range map[string]event.Media{
		"image/png": event.MediaImage, "image/jpeg": event.MediaImage, "Image/WEBP ; q=1": event.MediaImage,
		"image/heic": event.MediaOther, "image/svg+xml": event.MediaText,
		"text/plain; charset=utf-8": event.MediaText, "text/x-go": event.MediaText, "application/json": event.MediaText,
		"application/ld+json": event.MediaText, "application/x-yaml": event.MediaText,
		"audio/wav": event.MediaAudio, "audio/mpeg": event.MediaAudio, "audio/midi": event.MediaOther,
		"application/pdf": event.MediaPDF, "application/zip": event.MediaOther, "video/mp4": event.MediaOther, "": event.MediaOther,
	} {
		require.Equal(t, want, event.MediaOf(mediaType), mediaType)
	}
}

func TestMediaTypesMatchMediaOf(t *testing.T) {
	for _, pattern := range event.MediaTypes() {
		mediaType := strings.ReplaceAll(pattern, "*", "x")
		require.NotEqual(t, event.MediaOther, event.MediaOf(mediaType), mediaType)
	}
	require.Contains(t, event.MediaTypes(), "image/png")
}

func TestDecodeDataURL(t *testing.T) {
	for _, tc := range []struct{ raw, mediaType, data string }{
		{"data:image/png;base64,UE5H", "image/png", "PNG"},
		{"data:text/plain;charset=utf-8;base64,UE5H", "text/plain;charset=utf-8", "PNG"},
		{"data:image/svg+xml,%3Csvg/%3E", "image/svg+xml", "<svg/>"},
		{"data:,a%2Cb", "text/plain", "a,b"},
		{"data:;charset=utf-8,a,b", "text/plain;charset=utf-8", "a,b"},
		{"data:;base64,", "text/plain", ""},
	} {
		mediaType, data, err := event.DecodeDataURL(tc.raw)
		require.NoError(t, err, tc.raw)
		require.Equal(t, tc.mediaType, mediaType, tc.raw)
		require.Equal(t, tc.data, string(data), tc.raw)
	}
	for _, raw := range []string{"", "data:", "data:image/png;base64", "https://example.com/a,b", "data:;base64,%", "data:;base64,UE5", "data:,%zz"} {
		_, _, err := event.DecodeDataURL(raw)
		require.Error(t, err, raw)
	}
}
