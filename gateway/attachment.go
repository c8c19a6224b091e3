package gateway

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// imageTypes are displayed inline: browsers run no code in them. The page links to other files as
// downloads, and plays audio.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// attachmentTypes are the media types of responses.
func attachmentTypes() []string {
	audio := slices.DeleteFunc(event.MediaTypes(), func(mediaType string) bool { return event.MediaOf(mediaType) != event.MediaAudio })
	return slices.Concat(imageTypes, audio, []string{"application/octet-stream"})
}

// readAttachment reads the file of an event.
//
// It is available for files that were sent inline or are kept in the blob store, but not for URLs or files on the worker.
// PNG, JPEG, GIF and WebP images are displayed inline. All other files are downloads, with the type
// `application/octet-stream` except for WAV and MP3.
func (g *Gateway) readAttachment(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	held := share{of: g.answers}
	defer held.release()
	if err := held.await(ctx, event.MaxAttachmentBytes); err != nil {
		return err
	}
	file, err := c.Attachment(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	held.shrink(int64(len(file.Source.Data)))
	mediaType, disposition := event.BareMediaType(file.MediaType), "attachment"
	switch {
	case slices.Contains(imageTypes, mediaType):
		disposition = "inline"
	case event.MediaOf(mediaType) != event.MediaAudio:
		mediaType = "application/octet-stream"
	}
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": file.FileName}))
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	// The file is from an untrusted source, and another log may reuse the id.
	header.Set("Cache-Control", "private, max-age=3600, immutable")
	header.Set("Vary", "Authorization, Cookie") // tenants may use the same names
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.Source.Data))
	return nil
}
