package client_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func file(mediaType string, size int) event.Event {
	return event.New(event.FileAttachment{
		Source: event.Source{Type: event.SourceBlob, Data: bytes.Repeat([]byte("x"), size)}, MediaType: mediaType, FileName: "x.txt",
	})
}

// sendFile sends a file and returns the signalled event.
func sendFile(t *testing.T, a *archive.Archive, e event.Event) (event.FileAttachment, error) {
	t.Helper()
	f := &temporal{}
	c, err := client.New(client.Options{Temporal: f, Archive: a}).Open("demo")
	require.NoError(t, err)
	if _, err := c.Send(t.Context(), e); err != nil {
		require.Empty(t, f.signals)
		return event.FileAttachment{}, err
	}
	events, err := event.DecodeInput([]byte(f.signals[0].input))
	require.NoError(t, err)
	return events[0].Body.(event.FileAttachment), nil
}

func TestLargeFilesAreOffloadedOnce(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	long := file("text/plain", 3<<20)
	for range 2 {
		sent, err := sendFile(t, a, long)
		require.NoError(t, err)
		require.Empty(t, sent.Source.Data)
		require.EqualValues(t, 3<<20, sent.Size)
		ref, err := blobs.ParseRef(sent.Source.Ref)
		require.NoError(t, err)
		data, err := a.Blobs("demo").Get(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, long.Body.(event.FileAttachment).Source.Data, data)
	}
	require.Equal(t, 1, bucket.Writes())
	require.Len(t, long.Body.(event.FileAttachment).Source.Data, 3<<20, "the caller's event is unchanged")

	short, err := sendFile(t, a, file("text/plain", 100))
	require.NoError(t, err)
	require.Len(t, short.Source.Data, 100, "a small file stays inline")
	other, err := sendFile(t, a, file("application/zip", 1<<20))
	require.NoError(t, err)
	require.Len(t, other.Source.Data, 1<<20, "a media type that models do not support stays inline")
}

func TestAnExportedEventIsSentWithItsBytes(t *testing.T) {
	bucket := blobstest.New(t)
	data := []byte("PNG of a pier")
	recorded := event.New(event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: event.RefOf(data)}, MediaType: "image/png", Size: 13})
	exported, ok := recorded.WithBlob(data)
	require.True(t, ok)
	sent, err := sendFile(t, archive.New(bucket.Store), exported)
	require.NoError(t, err)
	require.Equal(t, recorded.Body, sent)
	stored, err := archive.New(bucket.Store).Blobs("demo").Get(t.Context(), blobs.RefOf(data))
	require.NoError(t, err)
	require.Equal(t, data, stored)

	exported.Extra["blobRef"] = []byte(`"` + event.RefOf([]byte("other")) + `"`)
	_, err = sendFile(t, archive.New(bucket.Store), exported)
	require.ErrorContains(t, err, "the bytes are not those of sha256/")
}

func TestFilesAboveTheLimitsAreRejected(t *testing.T) {
	bucket := archive.New(blobstest.New(t).Store)
	for name, test := range map[string]struct {
		archive *archive.Archive
		file    event.Event
		want    string
	}{
		"too large without a store": {nil, file("text/plain", 60_000), "60000 bytes (at most 36864 without a blob store; " + eventlog.StoreAdvice + ")"},
		"too large for the store":   {bucket, file("text/plain", event.MaxAttachmentBytes+1), "20971520"},
		"too large to stay inline":  {bucket, file("application/zip", 1<<20+1), "1048577 bytes (at most 1048576 for application/zip, which models do not receive)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sendFile(t, test.archive, test.file)
			require.ErrorAs(t, err, new(*event.FieldError))
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestTheLargestInlineFileFitsIntoAnEvent(t *testing.T) {
	sent, err := sendFile(t, archive.New(blobstest.New(t).Store), file("application/zip", 1<<20))
	require.NoError(t, err)
	data, err := event.New(sent).MarshalJSON()
	require.NoError(t, err)
	require.LessOrEqual(t, len(data), wire.MaxEventBytes)
}

func TestFilesWithinTheLimitsAreSent(t *testing.T) {
	text := event.New(event.UserMessage{Content: strings.Repeat("x", 10_000)})
	for name, store := range map[string]*archive.Archive{"without a store": nil, "with a store": archive.New(blobstest.New(t).Store)} {
		t.Run(name, func(t *testing.T) {
			contexts := client.New(client.Options{Temporal: &temporal{}, Archive: store})
			c, err := contexts.Open("demo")
			require.NoError(t, err)
			send := func(files ...event.Event) error {
				_, err := c.Send(t.Context(), append(files, text)...)
				return err
			}
			limits := contexts.Limits()
			require.NoError(t, send(file("text/plain", int(limits.Attachment))))
			require.Error(t, send(file("text/plain", int(limits.Attachment)+1)))
			require.NoError(t, send(file("application/zip", int(limits.OtherAttachment))))
			require.Error(t, send(file("application/zip", int(limits.OtherAttachment)+1)))
			if limits.Attachments == 0 {
				require.NoError(t, send(file("text/plain", int(limits.Attachment)), file("text/plain", int(limits.Attachment))))
				return
			}
			half := int(limits.Attachments / 2)
			require.NoError(t, send(file("text/plain", half), file("text/plain", half)))
			require.Error(t, send(file("text/plain", int(limits.Attachment)), file("text/plain", int(limits.Attachment))))
		})
	}
}
