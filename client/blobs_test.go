package client_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

// referring is a log that refers to an image, twice, and to a tool result in a store, and to a URL.
func referring(t *testing.T, store *archive.Blobs) []event.Event {
	image, err := store.Put(t.Context(), []byte("PNG of a harbour"))
	require.NoError(t, err)
	text := strings.Repeat("berth ", 100)
	whole, err := store.Put(t.Context(), []byte(event.StoredResultHeader+text))
	require.NoError(t, err)
	abridged, err := json.Marshal(text[:6] + event.AbridgedNote(len(text), 6, len(text)-6, strings.TrimPrefix(string(whole), "sha256/")) + text[len(text)-6:])
	require.NoError(t, err)
	log := numbered(6)
	attachment := event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Ref: string(image)}, MediaType: "image/png", FileName: "a.png", Size: 16}
	log[1].Body, log[2].Body = attachment, attachment
	log[3].Body = event.ToolResult{ToolCallID: "c", Value: abridged}
	log[4].Body = event.FileAttachment{Source: event.Source{Type: event.SourceURL, URL: "https://example.com/a.png"}, MediaType: "image/png"}
	return log
}

// exported writes a log as JSON lines with the bytes of its references.
func exported(t *testing.T, from *client.Context) string {
	var out bytes.Buffer
	_, err := chat.Write(&out, chat.JSONL, from.Events(t.Context(), ""), func(ref string) ([]byte, error) { return from.Blob(t.Context(), ref) })
	require.NoError(t, err)
	return out.String()
}

func TestAnImportIntoAnotherStoreHasTheBytesOfTheExport(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "demo", referring(t, logs.Blobs("demo")))
	text := exported(t, archived(t, &temporal{}, logs, "demo"))
	elsewhere := archive.New(blobstest.New(t).Store)
	for _, name := range []string{"demo", "copy"} {
		done, err := archived(t, &temporal{}, elsewhere, name).Import(t.Context(), chat.Read(strings.NewReader(text), name, eventtest.Epoch), client.ImportOptions{})
		require.NoError(t, err)
		require.Equal(t, client.Imported{Events: 6}, done)
		c := archived(t, &temporal{}, elsewhere, name)
		file, err := c.Attachment(t.Context(), event.FormatID(name, 2))
		require.NoError(t, err)
		require.Equal(t, "PNG of a harbour", string(file.Source.Data))
		verified, err := c.Verify(t.Context())
		require.NoError(t, err)
		require.Empty(t, verified.Problems)
	}
	copied := archived(t, &temporal{}, elsewhere, "demo")
	require.Equal(t, text, exported(t, copied), "the same log, byte for byte")
	require.Equal(t, jsonl(t, archived(t, &temporal{}, logs, "demo").Events(t.Context(), "")), jsonl(t, copied.Events(t.Context(), "")))
}

func TestAnImportWithMissingBytesFailsUnlessAllowed(t *testing.T) {
	elsewhere := archive.New(blobstest.New(t).Store)
	log := referring(t, archive.New(blobstest.New(t).Store).Blobs("demo"))
	copied := archived(t, &temporal{}, elsewhere, "demo")
	_, err := copied.Import(t.Context(), logOf(log), client.ImportOptions{})
	require.ErrorIs(t, err, client.ErrMissingBytes)
	require.EqualError(t, err, "import context demo: the blob store lacks the bytes of 3 events: demo:0002, demo:0003, demo:0004 (export the log with them, or set --allow-missing)")
	for _, err := range copied.Events(t.Context(), "") {
		require.ErrorIs(t, err, client.ErrNoContext)
	}

	done, err := copied.Import(t.Context(), logOf(log), client.ImportOptions{AllowMissing: true})
	require.NoError(t, err)
	require.Equal(t, client.Imported{Events: 6, Missing: []string{"demo:0002", "demo:0003", "demo:0004"}}, done)
	verified, err := copied.Verify(t.Context())
	require.NoError(t, err)
	image, result := log[1].BlobRef(), log[3].BlobRef()
	require.Equal(t, []client.Problem{
		{Place: "demo:0002", Text: fmt.Sprintf("blob %s is not in the store", image)},
		{Place: "demo:0003", Text: fmt.Sprintf("blob %s is not in the store", image)},
		{Place: "demo:0004", Text: fmt.Sprintf("blob %s is not in the store", result)},
	}, verified.Problems)
}

func TestVerifyReportsDamagedBytes(t *testing.T) {
	bucket := blobstest.New(t)
	logs := archive.New(bucket.Store)
	log := referring(t, logs.Blobs("demo"))
	put(t, logs, "demo", log)
	bucket.Set("blobs/demo/"+log[3].BlobRef(), []byte("other bytes"))
	verified, err := archived(t, &temporal{}, logs, "demo").Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, verified.Problems, 1)
	require.Equal(t, "demo:0004", verified.Problems[0].Place)
	require.Contains(t, verified.Problems[0].Text, "is damaged")
}

func TestAnImportWithDamagedBytesFails(t *testing.T) {
	logs := archive.New(blobstest.New(t).Store)
	put(t, logs, "demo", referring(t, logs.Blobs("demo")))
	text := exported(t, archived(t, &temporal{}, logs, "demo"))
	damaged := strings.Replace(text, `"data":"UE`, `"data":"UF`, 1)
	require.NotEqual(t, text, damaged)
	_, err := archived(t, &temporal{}, archive.New(blobstest.New(t).Store), "demo").
		Import(t.Context(), chat.Read(strings.NewReader(damaged), "demo", eventtest.Epoch), client.ImportOptions{AllowMissing: true})
	require.ErrorContains(t, err, "import event demo:0002: FileAttachmentEvent.blobRef: the bytes are not those of sha256/")
}

func TestAnImportStoresLargeFilesAsSendDoes(t *testing.T) {
	bucket := blobstest.New(t)
	logs := archive.New(bucket.Store)
	large := bytes.Repeat([]byte("x"), 17<<20)
	document, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "text", "text": "Read it."},
		map[string]any{"type": "file", "file": map[string]any{"filename": "a.pdf", "file_data": large}},
	}}}})
	require.NoError(t, err)
	c := archived(t, &temporal{}, logs, "demo")
	_, err = c.Import(t.Context(), chat.Read(bytes.NewReader(document), "demo", eventtest.Epoch), client.ImportOptions{})
	require.NoError(t, err)
	for e, err := range c.Events(t.Context(), "") {
		require.NoError(t, err)
		if file, ok := e.Body.(event.FileAttachment); ok {
			require.Equal(t, event.FileAttachment{
				Source: event.Source{Type: event.SourceBlob, Ref: event.RefOf(large)}, MediaType: "application/pdf", FileName: "a.pdf", Size: 17 << 20,
			}, file)
		}
	}
	file, err := c.Attachment(t.Context(), "demo:0001")
	require.NoError(t, err)
	require.Equal(t, large, file.Source.Data)

	other := numbered(1)
	other[0].Body = event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: bytes.Repeat([]byte("x"), 2<<20)}, MediaType: "application/zip"}
	require.NoError(t, importLog(t.Context(), archived(t, &temporal{}, logs, "other"), []event.Event{other[0].MovedTo("other")}), "it stays inline")
	other[0].Body = event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: bytes.Repeat([]byte("x"), 13<<20)}, MediaType: "application/zip"}
	require.ErrorContains(t, importLog(t.Context(), archived(t, &temporal{}, logs, "huge"), []event.Event{other[0].MovedTo("huge")}), "import event huge:0001: ")
}
