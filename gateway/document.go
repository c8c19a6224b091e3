package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// documentTTL is how long an outdated document is sent to new viewers, followed by a patch:
// encoding a long document for each version would be too expensive.
const documentTTL = time.Second

// documentNow may return an older document, of at most maxAge.
func (s *transcriptState) documentNow(epoch string, maxAge time.Duration) *document {
	if s.cached == nil || s.cached.version != s.patcher.Version() && time.Since(s.cached.at) >= maxAge {
		s.cached = &document{
			at: time.Now(), version: s.patcher.Version(),
			id: formatVersion(epoch, s.patcher.Version()), items: s.patcher.Document().Entries,
		}
	}
	return s.cached
}

// transcriptPage describes what [document.writeTo] writes.
type transcriptPage struct {
	Version  string              `json:"version" schema:"is=Version"`
	Document transcript.Document `json:"document"`
}

// document is a version of a transcript. Its JSON is written in pieces, since it can be much larger than
// the memory of the gateway. The first piece, which often is all of it, is encoded once for all viewers.
type document struct {
	at      time.Time
	version int
	id      string
	items   []transcript.Item
	once    sync.Once
	first   []byte
	encoded int // number of items in first
}

// pieceBytes is the size of a piece, apart from texts that are longer.
const pieceBytes = 1 << 20

// writeTo writes the JSON. All pieces but the first count against the limit while they exist.
func (d *document) writeTo(ctx context.Context, limit *byteLimit, write func([]byte) error) error {
	d.once.Do(d.encodeFirst)
	if err := write(d.first); err != nil {
		return err
	}
	for i := d.encoded; i < len(d.items); {
		size := pieceBytes + textBytes(d.items[i])
		held := share{of: limit}
		if err := held.await(ctx, int64(size)); err != nil {
			return err
		}
		var piece bytes.Buffer
		i = d.encode(&piece, i, size)
		err := write(piece.Bytes())
		held.release()
		if err != nil {
			return err
		}
	}
	return write([]byte("]}}"))
}

func (d *document) encodeFirst() {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"version":%q,"document":{"entries":[`, d.id)
	if len(d.items) > 0 && textBytes(d.items[0]) <= pieceBytes {
		d.encoded = d.encode(&b, 0, pieceBytes)
	}
	d.first = b.Bytes()
}

// encode appends the items from number i on, at least one and then those whose text fits into size. It
// returns the number of the next item.
func (d *document) encode(b *bytes.Buffer, i, size int) int {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	for begin := i; i < len(d.items) && (i == begin || b.Len()+textBytes(d.items[i]) <= size); i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		_ = encoder.Encode(d.items[i]) // items always encode
		b.Truncate(b.Len() - 1)
	}
	return i
}

// textBytes is about twice the size of an item's text, since encoding it takes a copy.
func textBytes(item transcript.Item) int { return 2 * len(item.Content.Text()) }
