package llm

import (
	"context"
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
func (t *Target) attachment(ctx context.Context, a reducer.Attachment) block {
	media := event.MediaOf(a.MediaType)
	switch isShown := media == event.MediaImage || media == event.MediaText; {
	case t.quirks.textOnly || !isShown:
		// Sound and PDFs among it: go-openai has no parts for them.
		return note(a, "")
	case a.Source.IsRef() && t.readBlob == nil:
		return note(a, ", which is not available")
	case media == event.MediaImage:
		return t.image(ctx, a)
	case !t.isAtHand(a.Source):
		return note(a, "")
	}
	data, err := t.read(ctx, a.Source)
	if err != nil || !utf8.Valid(data) {
		return note(a, ", which could not be read")
	}
	if isBlank(string(data)) {
		return note(a, ", which is empty")
	}
	return block{text: fmt.Sprintf("[Attached: %s]\n%s", a.Name(), data)}
}

// note tells of an attachment without showing it: where it is, or what a blob is
// called.
func note(a reducer.Attachment, but string) block {
	name := a.Source.String()
	if a.Source.Type == event.SourceBlob {
		name = a.Name()
	}
	return block{text: fmt.Sprintf("[Attached: %s%s]", name, but)}
}

func (t *Target) image(ctx context.Context, a reducer.Attachment) block {
	isData := strings.HasPrefix(a.Source.URL, "data:")
	if a.Source.Type == event.SourceURL && (isData || !t.quirks.dataImagesOnly) {
		return block{imageURL: a.Source.URL}
	}
	if a.Source.Type == event.SourceURL || a.Source.Type == event.SourceFile && t.readAttachment == nil {
		return note(a, "")
	}
	data, err := t.read(ctx, a.Source)
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

// read returns the bytes of a source, and logs it when those that should be there
// are not.
func (t *Target) read(ctx context.Context, s event.Source) (data []byte, err error) {
	switch {
	case s.Type == event.SourceFile:
		data, err = t.readAttachment(s.Path)
	case s.Type == event.SourceURL:
		_, data, err = event.DecodeDataURL(s.URL)
		return data, err
	case s.IsRef():
		timed, cancel := context.WithTimeout(ctx, BlobTimeout)
		defer cancel()
		data, err = t.readBlob(timed, s.Ref)
	default:
		return s.Data, nil
	}
	if err != nil && ctx.Err() == nil {
		t.logger.WarnContext(ctx, "an attachment could not be read, and the model is told so",
			"attachment", s.String(), "error", event.Redact(err.Error(), 200))
	}
	return data, err
}
