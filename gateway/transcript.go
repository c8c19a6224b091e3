package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// transcript is GET /contexts/{name}/transcript: the document, or a stream of what
// changes in it.
func (g *Gateway) transcript(w http.ResponseWriter, r *http.Request) error {
	of, err := g.context(r)
	if err != nil {
		return err
	}
	room, leave, err := g.rooms.enter(of, wantsStream(r))
	if err != nil {
		return err
	}
	defer leave()
	if !wantsStream(r) {
		w.Header().Set("Vary", "Accept")
		return writeTranscript(w, r, room)
	}
	version := room.parseVersion(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("version")))
	var told doing
	return g.serveStream(w, r, func(_ context.Context, out *stream) (<-chan struct{}, error) {
		news, err := room.transcriptAfter(version)
		if err != nil {
			return nil, err
		}
		version = news.version
		if !news.begun {
			return news.more, nil
		}
		var frames [][]byte
		if news.frame != nil {
			frames = append(frames, news.frame())
		}
		if news.doing != told {
			told = news.doing
			frames = append(frames, told.frame())
		}
		return news.more, out.send(frames...)
	})
}

// writeTranscript waits until the room has read what there is.
func writeTranscript(w http.ResponseWriter, r *http.Request, of *room) error {
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	for {
		document, more, err := of.document()
		switch {
		case err != nil:
			return err
		case document != nil:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = w.Write(document.json()) // an error means that nobody is there any more
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// scene is the transcript of a room.
type scene struct {
	patcher *transcript.Patcher
	// patches are those from earlier versions to the newest.
	patches map[int]*patch
	// given is the document that viewers were given last.
	given *document
}

func newScene() scene { return scene{patcher: transcript.NewPatcher()} }

// apply is called with the lock of the room held, like all that follows.
func (s *scene) apply(e event.Event) {
	before := s.patcher.Version()
	operations := s.patcher.Apply(e)
	if s.patcher.Version() != before {
		s.patches = map[int]*patch{before: {operations: operations}}
	}
}

// patchFrom is the patch from a version to the newest; ok is false when that
// version is not known.
func (s *scene) patchFrom(version int) (p *patch, ok bool) {
	if p, ok := s.patches[version]; ok {
		return p, true
	}
	operations, ok := s.patcher.Since(version)
	if !ok {
		return nil, false
	}
	p = &patch{operations: operations}
	s.patches[version] = p
	return p, true
}

// patch is encoded once for all viewers, by the first of them.
type patch struct {
	operations []transcript.Operation
	once       sync.Once
	encoded    []byte
}

func (p *patch) frame(id string) []byte {
	p.once.Do(func() { p.encoded = frame(id, "patch", encode(p.operations)) })
	return p.encoded
}

// givenFor is how long a document is given to viewers who then need a patch to
// the newest one. To encode a long one for each version would take too long.
const givenFor = time.Second

// documentNow is the newest document, or one that is not much older.
func (s *scene) documentNow(epoch string, atMost time.Duration) *document {
	if s.given == nil || s.given.version != s.patcher.Version() && time.Since(s.given.at) >= atMost {
		s.given = &document{
			at: time.Now(), epoch: epoch, version: s.patcher.Version(), value: s.patcher.Document(),
		}
	}
	return s.given
}

// document is one version of a transcript. It is encoded once for all viewers, by
// the first of them.
type document struct {
	at      time.Time
	epoch   string
	version int
	value   transcript.Document
	once    sync.Once
	encoded []byte
}

func (d *document) json() []byte {
	d.once.Do(func() {
		d.encoded = encode(struct {
			Version  string              `json:"version"`
			Document transcript.Document `json:"document"`
		}{formatVersion(d.epoch, d.version), d.value})
	})
	return d.encoded
}

func (d *document) frame() []byte {
	return frame(formatVersion(d.epoch, d.version), "document", d.json())
}

func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // documents and patches have JSON
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// formatVersion is a version as viewers know it.
func formatVersion(epoch string, version int) string { return fmt.Sprintf("%s.%d", epoch, version) }

// noVersion is what no room knows.
const noVersion = -1

// parseVersion is noVersion for one of another room, or of none.
func (r *room) parseVersion(text string) int {
	if number, ok := strings.CutPrefix(text, r.epoch+"."); ok {
		if version, err := strconv.Atoi(number); err == nil && version >= 0 {
			return version
		}
	}
	return noVersion
}

// document returns the newest document, once the room has read what there is, and
// until then nil. The error is why the room has ended, or that there is no context.
func (r *room) document() (*document, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return nil, nil, r.err
	case !r.present:
		return nil, r.more(), nil
	case r.missing:
		return nil, nil, fmt.Errorf("context %s: %w", r.name, session.ErrNoContext)
	}
	return r.scene.documentNow(r.epoch, 0), nil, nil
}

// transcriptNews is what a viewer of a transcript has not seen.
type transcriptNews struct {
	// frame encodes it, without the lock of the room; nil: there is nothing.
	frame   func() []byte
	version int // behind it
	doing   doing
	// begun says that the room has read what there was.
	begun bool
	more  <-chan struct{}
}

// transcriptAfter returns what comes after a version: a patch, or the document when
// the version is not known. The error is why the room has ended.
func (r *room) transcriptAfter(version int) (transcriptNews, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := transcriptNews{version: version, doing: r.doing, begun: r.present}
	newest := r.scene.patcher.Version()
	if !r.present || version == newest {
		if r.err != nil {
			return news, r.err
		}
		news.more = r.more()
		return news, nil
	}
	if p, ok := r.scene.patchFrom(version); ok {
		id := formatVersion(r.epoch, newest)
		news.frame, news.version, news.more = func() []byte { return p.frame(id) }, newest, r.more()
	} else {
		d := r.scene.documentNow(r.epoch, givenFor)
		news.frame, news.version, news.more = d.frame, d.version, r.more()
	}
	if news.version != newest || r.err != nil {
		news.more = closedChannel
	}
	return news, nil
}
