package llm

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type block struct {
	part
	isNote bool // in place of an attachment
}

func textBlock(text string) block { return block{part: textPart(text)} }

// attachment renders an attachment as a content part, as the text of a text file, or as a note.
func (t *Target) attachment(ctx context.Context, a reducer.Attachment, refused map[event.Content]string) block {
	media := event.MediaOf(a.MediaType)
	if reason, isRefused := refused[media.Content()]; isRefused {
		return note(a, ", which the provider refused: "+reason)
	}
	switch {
	case t.quirks.textOnly || media != event.MediaText && !t.quirks.accepts.has(media):
		return note(a, "")
	case a.Source.IsRef() && t.ReadBlob == nil:
		return note(a, ", which is not available")
	case media != event.MediaText:
		return t.media(ctx, media, a)
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
	return textBlock(fmt.Sprintf("[Attached: %s]\n%s", a.Name(), data))
}

func note(a reducer.Attachment, but string) block {
	name := a.Source.String()
	if a.Source.Type == event.SourceBlob {
		name = a.Name()
	}
	return block{part: textPart(fmt.Sprintf("[Attached: %s%s]", name, but)), isNote: true}
}

func (t *Target) media(ctx context.Context, media event.Media, a reducer.Attachment) block {
	isData := strings.HasPrefix(a.Source.URL, "data:")
	if a.Source.Type == event.SourceURL && (isData && media == event.MediaImage || !isData && t.quirks.fetches(media)) {
		return block{part: t.quirks.partOf(media, a, a.Source.URL)}
	}
	if !t.isReadable(a.Source) {
		return note(a, "")
	}
	data, err := t.read(ctx, a.Source)
	if err != nil || len(data) == 0 {
		return note(a, ", which could not be read")
	}
	return block{part: t.quirks.partOf(media, a, "data:"+event.BareMediaType(a.MediaType)+";base64,"+base64.StdEncoding.EncodeToString(data))}
}

const defaultName = "document.pdf" // OpenAI requires a name

// partOf takes a URL that the provider fetches, a data URL in base64, or any data URL of an image.
func (q quirks) partOf(media event.Media, a reducer.Attachment, url string) part {
	_, data, _ := strings.Cut(url, ";base64,")
	switch {
	case media == event.MediaImage:
		return part{Type: "image_url", ImageURL: &imageURL{URL: url}}
	case media == event.MediaAudio && q.mistralParts:
		return part{Type: "input_audio", InputAudio: data}
	case media == event.MediaAudio:
		return part{Type: "input_audio", InputAudio: inputAudio{Data: data, Format: audioFormat(a.MediaType)}}
	case q.mistralParts:
		return part{Type: "document_url", DocumentURL: url}
	default:
		return part{Type: "file", File: &filePart{FileName: cmp.Or(a.FileName, defaultName), FileData: url}}
	}
}

func audioFormat(mediaType string) string {
	if strings.Contains(event.BareMediaType(mediaType), "wav") {
		return "wav"
	}
	return "mp3"
}

// isReadable rejects remote URLs: the worker can reach hosts that the sender of the event cannot.
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
		data, err = t.ReadBlob(timed, s.Ref)
	default:
		return s.Data, nil
	}
	if err != nil && ctx.Err() == nil {
		t.logger.WarnContext(ctx, "cannot read an attachment; sending a note to the model instead",
			"attachment", s.String(), "error", event.Redact(err.Error(), 200))
	}
	return data, err
}
