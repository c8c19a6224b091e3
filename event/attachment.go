package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// FileAttachment is a file that belongs to the next user message.
//
//schema:rules {"if":{"properties":{"source":{"required":["ref"]}}}}
//schema:rules {"then":{"required":["size"],"properties":{"size":{"minimum":1,"maximum":"$MaxAttachmentBytes"}}}}
//schema:rules {"properties":{"source":{"oneOf":[{"properties":{"type":{"const":"file"}},"required":["path"]},{"properties":{"type":{"const":"url"}},"required":["url"]},{"properties":{"type":{"const":"blob"}},"required":["data"],"not":{"required":["ref"]}},{"properties":{"type":{"const":"blob"}},"required":["ref"],"not":{"required":["data"]}}]}}}
//doc:effect is pending until the next user message
type FileAttachment struct {
	Source Source `json:"source"`
	// RFC 6838. `/limits` lists the types that models can be shown; for other types, models receive only the name.
	MediaType string `json:"mediaType" schema:"pattern=mediaTypePattern"`
	FileName  string `json:"fileName,omitempty"`
	Size      int64  `json:"size,omitempty" schema:"min=0"` // in bytes; 0: unknown
}

const TagFileAttachment Tag = "FileAttachmentEvent"

func (FileAttachment) Tag() Tag { return TagFileAttachment }

func (b FileAttachment) validate() error {
	if err := b.Source.validate(); err != nil {
		return err
	}
	if !mediaType.MatchString(b.MediaType) {
		return fieldf("mediaType", "want a media type like image/png (RFC 6838), got %s", quote(b.MediaType))
	}
	if b.Size < 0 {
		return fieldf("size", "want 0 or more, got %d", b.Size)
	}
	if !b.Source.IsRef() {
		return nil
	}
	if b.Size < 1 || b.Size > MaxAttachmentBytes {
		return fieldf("size", "want 1 to %d bytes with a ref, got %d", MaxAttachmentBytes, b.Size)
	}
	if MediaOf(b.MediaType) == MediaOther {
		return fieldf("mediaType", "with a ref, want %s; got %s", mediaTypes, quote(b.MediaType))
	}
	return nil
}

func (b FileAttachment) Words() (subject, text string) {
	text = cmp.Or(b.FileName, b.Source.String()) + " (" + b.MediaType
	if b.Size > 0 {
		text += fmt.Sprintf(", %d bytes", b.Size)
	}
	return "attachment", text + ")"
}

func (FileAttachment) example() Body {
	return FileAttachment{
		Source: Source{Type: SourceURL, URL: "https://example.com/cat.png"}, MediaType: "image/png", FileName: "cat.png", Size: 1024,
	}
}

const mediaTypePattern = `^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}(;[\x20-\x7e]*)?$`

var mediaType = regexp.MustCompile(mediaTypePattern)

// MaxAttachmentBytes bounds a referenced blob. Lowering it would invalidate existing logs.
const MaxAttachmentBytes = 20 << 20

// Source is where the bytes of a file are: a `file` has a Path, a `url` has a URL, a `blob` has Data or a Ref. With a blob
// store, the log has a Ref in place of long Data.
//
//schema:rules {"properties":{"url":{"pattern":"^(https?://[^/?#@]+([/?#]|$)|data:)"},"data":{"pattern":"^[A-Za-z0-9+/]*={0,2}$"}}}
//schema:rules {"properties":{"ref":{"pattern":"^(blob:)?sha256/[0-9a-f]{64}$"}}}
type Source struct {
	Type string `json:"type" schema:"enum=sourceTypes"`
	// Where the worker finds the file, below the folder that its operator allows.
	Path string `json:"path,omitempty" schema:"min=1"`
	URL  string `json:"url,omitempty"`                 // an http, https or data URL without a user name or password
	Data []byte `json:"data,omitempty" schema:"min=1"` // the bytes; `/limits` has the maximum
	// The name of the bytes in the blob store. The event must have a `size`, and a `mediaType` that models can be
	// shown.
	Ref string `json:"ref,omitempty"`
}

func (s Source) validate() error {
	switch s.Type {
	case SourceFile:
		if s.Path == "" {
			return fieldf("source.path", "missing (required for type file)")
		}
	case SourceURL:
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "data" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return fieldf("source.url", "want an http, https or data URL")
		}
		if u.User != nil {
			return fieldf("source.url", "contains a user name or password (remove it; the log would keep it)")
		}
	case SourceBlob:
		switch {
		case len(s.Data) > 0 && s.Ref != "":
			return fieldf("source.ref", "set together with data (want only one of them)")
		case s.Ref != "" && !blobRef.MatchString(s.Ref):
			return fieldf("source.ref", "want sha256/ and 64 lowercase hex digits, got %s", quote(s.Ref))
		case s.Ref == "" && len(s.Data) == 0:
			return fieldf("source.data", "missing (type blob requires data in base64 or a ref)")
		}
	default:
		return fieldf("source.type", "want %s, got %s", oneOf(strings.Split(sourceTypes, "|")), quote(s.Type))
	}
	return nil
}

// UnmarshalJSON strips the optional prefix "blob:" from the Ref.
func (s *Source) UnmarshalJSON(data []byte) error {
	type plain Source
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	s.Ref = strings.TrimPrefix(s.Ref, refScheme)
	return nil
}

// IsRef reports whether the bytes are in the blob store.
func (s Source) IsRef() bool { return s.Type == SourceBlob && s.Ref != "" }

// String returns the path, the URL without the data of a data URL, "blob:" and the Ref, or "blob".
func (s Source) String() string {
	switch {
	case s.Type == SourceFile:
		return s.Path
	case s.Type == SourceURL:
		return shortURL(s.URL)
	case s.IsRef():
		return refScheme + s.Ref
	default:
		return s.Type
	}
}

// Types of a [Source].
const (
	SourceFile = "file"
	SourceURL  = "url"
	SourceBlob = "blob"

	sourceTypes = SourceFile + "|" + SourceURL + "|" + SourceBlob
)

const refScheme = "blob:"

var blobRef = regexp.MustCompile(`^sha256/[0-9a-f]{64}$`)

func shortURL(raw string) string {
	if strings.HasPrefix(raw, "data:") {
		if head, _, ok := strings.Cut(raw, ","); ok {
			return head + ",…"
		}
	}
	return raw
}
