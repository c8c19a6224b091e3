package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestAttachmentReadsTheLogOrTheBlobStore(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	ref, err := logs.Blobs("demo").Put(t.Context(), []byte("offloaded"))
	require.NoError(t, err)
	log := numbered(6)
	for i, source := range []event.Source{
		{Type: event.SourceBlob, Data: []byte("inline")},
		{Type: event.SourceBlob, Ref: string(ref)},
		{Type: event.SourceBlob, Ref: string(blobs.RefOf([]byte("gone")))},
		{Type: event.SourceURL, URL: "https://example.com/a.png"},
		{Type: event.SourceFile, Path: "a.png"},
	} {
		log[i].Body = event.FileAttachment{Source: source, MediaType: "image/png", FileName: "a.png", Size: 7}
	}
	put(t, logs, "demo", log)
	demo := archived(t, &temporal{}, logs, "demo")
	for id, want := range map[string]string{"demo:0001": "inline", "demo:0002": "offloaded"} {
		file, err := demo.Attachment(t.Context(), id)
		require.NoError(t, err, id)
		require.Equal(t, want, string(file.Source.Data), id)
	}
	for id, want := range map[string]string{
		"demo:0003": "is not in the store", "demo:0004": "the bytes of the file are not in the log", "demo:0005": "the bytes of the file are not in the log", "demo:0006": "the event has no file",
		"demo:0007": "the log ends before the event", "other:0001": "want an id like demo:0002", "demo:1": "want an id like demo:0002", "": "want an id like demo:0002",
	} {
		_, err := demo.Attachment(t.Context(), id)
		require.ErrorIs(t, err, client.ErrNoAttachment, id)
		require.ErrorContains(t, err, want, id)
	}
}
