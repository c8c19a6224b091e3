package thread

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// Attach returns the file at a URL; a data URL has its bytes. Without a media type, it has that of the URL, if that shows one.
func Attach(name, mediaType, from string) (event.FileAttachment, error) {
	file := event.FileAttachment{FileName: name, MediaType: mediaType, Source: event.Source{Type: event.SourceURL, URL: from}}
	rest, isData := strings.CutPrefix(from, "data:")
	if !isData {
		at, _, _ := strings.Cut(from, "?")
		file.MediaType = cmp.Or(mediaType, mime.TypeByExtension(path.Ext(at)))
		return file, nil
	}
	head, text, ok := strings.Cut(rest, ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	var data []byte
	var err error
	if isBase64 {
		data, err = base64.StdEncoding.DecodeString(text)
	} else {
		text, err = url.PathUnescape(text)
		data = []byte(text)
	}
	if err != nil || !ok || len(data) == 0 {
		return file, gateway.BadRequest("", "the data URL of the file %q is malformed or empty", event.Redact(name, 0))
	}
	file.MediaType, file.Size = cmp.Or(mediaType, kind), int64(len(data))
	file.Source = event.Source{Type: event.SourceBlob, Data: data}
	return file, nil
}

// MaxMessageID leaves room for [FileID] in a client event id.
const MaxMessageID = event.MaxClientEventID - len("/file-999")

// FileID returns the client event id of the file n of a message, which has the id of the message as its own.
func FileID(messageID string, n int) string { return fmt.Sprintf("%s/file-%d", messageID, n) }
