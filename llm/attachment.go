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

// block is a part of a user message: text or an image.
type block struct {
	text     string
	imageURL string
}

// attachment renders an attachment: images in formats that models read, the content of text
// files, and a note for everything else, including files that cannot be read.
func (t *Target) attachment(ctx context.Context, a reducer.Attachment) block {
	media := event.MediaOf(a.MediaType)
	switch isShown := media == event.MediaImage || media == event.MediaText; {
	case t.quirks.textOnly || !isShown:
		// Including audio and PDFs: go-openai has no parts for them.
		return note(a, "")
	case a.Source.IsRef() && t.readBlob == nil:
		return note(a, ", which is not available")
	case media == event.MediaImage:
		return t.image(ctx, a)
	case !t.isReadable(a.Source):
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

// note renders a note with the place of an attachment, or the name of a blob.
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

// isReadable reports whether the bytes of a source can be read. The worker never fetches URLs: it
// may reach hosts that the sender may not.
func (t *Target) isReadable(s event.Source) bool {
	switch s.Type {
	case event.SourceFile:
		return t.readAttachment != nil
	case event.SourceURL:
		return strings.HasPrefix(s.URL, "data:")
	default:
		return true
	}
}

// read returns the bytes of a source and logs failures.
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
		t.logger.WarnContext(ctx, "cannot read an attachment; sending a note to the model instead",
			"attachment", s.String(), "error", event.Redact(err.Error(), 200))
	}
	return data, err
}
