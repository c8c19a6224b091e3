package llm

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// block is a part of a user message: a text or an image.
type block struct {
	text     string
	imageURL string
}

// attachment is what a model is shown of an attachment: an image in the
// formats that models read, the text of a file of text, and of anything else
// that it is there. An attachment that cannot be read is told as much, so that
// one lost file does not end a conversation.
func (t *Target) attachment(a reducer.Attachment) block {
	switch media := event.MediaOf(a.MediaType); {
	case t.quirks.textOnly:
		return note(a, "")
	case media == event.MediaImage:
		return t.image(a)
	case media == event.MediaText && t.isAtHand(a.Source):
		data, err := t.read(a.Source)
		if err != nil || !utf8.Valid(data) {
			return note(a, ", which could not be read")
		}
		if isBlank(string(data)) {
			return note(a, ", which is empty")
		}
		return block{text: fmt.Sprintf("[Attached: %s]\n%s", a.Name(), data)}
	default:
		return note(a, "")
	}
}

// note tells of an attachment without showing it: where it is, or how it is called
// when it is nowhere else.
func note(a reducer.Attachment, but string) block {
	name := a.Source.String()
	if a.Source.Type == event.SourceBlob {
		name = a.Name()
	}
	return block{text: fmt.Sprintf("[Attached: %s%s]", name, but)}
}

func (t *Target) image(a reducer.Attachment) block {
	isData := strings.HasPrefix(a.Source.URL, "data:")
	if a.Source.Type == event.SourceURL && (isData || !t.quirks.dataImagesOnly) {
		return block{imageURL: a.Source.URL}
	}
	if a.Source.Type == event.SourceURL || a.Source.Type == event.SourceFile && t.readAttachment == nil {
		return note(a, "")
	}
	data, err := t.read(a.Source)
	if err != nil || len(data) == 0 {
		return note(a, ", which could not be read")
	}
	return block{imageURL: "data:" + event.BareMediaType(a.MediaType) + ";base64," + base64.StdEncoding.EncodeToString(data)}
}

// isAtHand reports whether the bytes of a source are here or can be read.
// Nothing is fetched from the network: the URL came from outside, and the
// worker may reach what its sender may not.
func (t *Target) isAtHand(s event.Source) bool {
	switch s.Type {
	case event.SourceFile:
		return t.readAttachment != nil
	case event.SourceURL:
		return strings.HasPrefix(s.URL, "data:")
	default:
		return true
	}
}

func (t *Target) read(s event.Source) ([]byte, error) {
	switch s.Type {
	case event.SourceFile:
		return t.readAttachment(s.Path)
	case event.SourceURL:
		_, data, err := event.DecodeDataURL(s.URL)
		return data, err
	default:
		return s.Data, nil
	}
}
