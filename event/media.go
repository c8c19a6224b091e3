package event

import (
	"encoding/base64"
	"errors"
	"net/url"
	"path"
	"strings"
)

// Media classifies files by how they can be shown to a model.
type Media int

// Content returns the kind of content of attachments of the media; "" for text and other files, of which models
// receive the text or a note.
func (m Media) Content() Content {
	switch m {
	case MediaImage:
		return ContentImages
	case MediaPDF:
		return ContentPDFs
	case MediaAudio:
		return ContentAudio
	}
	return ""
}

// Kinds of media. Models receive a note instead of a file of [MediaOther].
const (
	MediaOther Media = iota
	MediaImage
	MediaText
	MediaAudio
	MediaPDF
)

const mediaTypes = "image/png, image/jpeg, image/gif, image/webp, audio/wav, audio/mpeg, application/pdf, text/*, " +
	"application/json or another application type that is text"

// shown lists [path.Match] patterns; other media types are [MediaOther].
var shown = []struct {
	media    Media
	patterns []string
}{
	{MediaImage, []string{"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"}},
	{MediaAudio, []string{"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"}},
	{MediaPDF, []string{"application/pdf"}},
	{MediaText, []string{
		"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/typescript", "application/sql", "application/x-sh",
		"application/x-ndjson", "application/jsonl", "text/*", "*/*+json", "*/*+xml", "*/*+yaml",
	}},
}

// MediaTypes returns all media types but [MediaOther], as patterns: * matches all but a slash.
func MediaTypes() []string {
	var all []string
	for _, kind := range shown {
		all = append(all, kind.patterns...)
	}
	return all
}

// MediaOf classifies a media type. Formats that providers do not support are [MediaOther], because
// one such file makes a provider reject every later request of the conversation.
func MediaOf(mediaType string) Media {
	bare := BareMediaType(mediaType)
	for _, kind := range shown {
		for _, pattern := range kind.patterns {
			if ok, _ := path.Match(pattern, bare); ok { // the patterns are well-formed
				return kind.media
			}
		}
	}
	return MediaOther
}

// BareMediaType returns a media type in lower case without parameters.
func BareMediaType(mediaType string) string {
	bare, _, _ := strings.Cut(mediaType, ";")
	return strings.ToLower(strings.TrimSpace(bare))
}

// DecodeDataURL decodes a data URL (RFC 2397). The default media type is text/plain.
func DecodeDataURL(raw string) (mediaType string, data []byte, err error) {
	head, encoded, ok := strings.Cut(raw, ",")
	head, isDataURL := strings.CutPrefix(head, "data:")
	if !ok || !isDataURL {
		return "", nil, errors.New("want a data URL like data:image/png;base64,…")
	}
	mediaType, isBase64 := strings.CutSuffix(head, ";base64")
	if mediaType == "" || mediaType[0] == ';' {
		mediaType = "text/plain" + mediaType
	}
	text, err := url.PathUnescape(encoded)
	if err != nil || !isBase64 {
		return mediaType, []byte(text), err
	}
	data, err = base64.StdEncoding.DecodeString(text)
	return mediaType, data, err
}
