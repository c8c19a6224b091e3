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

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

// readTranscript reads the rendered conversation, or streams its changes.
//
// With `Accept: text/event-stream` the response is a stream of `patch` events. The data of each is a JSON Patch (RFC 6902)
// to the document of the previous version, and its id is the new version. The stream starts at `Last-Event-ID` or
// `version`. If no version is given, or the gateway does not know it, for example after a restart, the stream starts with
// a `document` event, with the same data as the JSON response and the version as id. The stream waits for a context that
// does not exist yet and sends an empty document in the meantime. `status` events without an id are interleaved, at the
// start and on each change: the status of the context according to its log, and since when, and what waits for a worker.
// The log does not show that a session was terminated from outside. The list of contexts then has status `closed` and a
// later `closedAt`. If an answer was running, the status of this stream is `closed` after five silent seconds.
func (g *Gateway) readTranscript(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	room, leave, err := tenantOf(r).rooms.enter(c, wantsStream(r))
	if err != nil {
		return err
	}
	defer leave()
	if !wantsStream(r) {
		w.Header().Set("Vary", "Accept")
		return g.writeTranscript(w, r, room)
	}
	version := room.parseVersion(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("version")))
	deltas, sent := noDeltas, status{}
	return g.serveStream(w, r, nil, func(ctx context.Context, out *stream) (<-chan struct{}, error) {
		update, err := room.transcriptAfter(version)
		if err != nil {
			return nil, err
		}
		version = update.version
		if !update.isReady {
			return update.changed, nil
		}
		switch {
		case update.patch != nil:
			err = out.write(update.patch.frame(room.epoch, version))
		case update.document != nil:
			err = out.writeDocument(ctx, update.document, g.answers)
		}
		if err != nil {
			return nil, err
		}
		var frames [][]byte
		if update.status != sent {
			sent = update.status
			frames = append(frames, sent.frame())
		}
		err = out.send(frames...)
		g.sent(deltas, update.deltas)
		deltas = update.deltas
		return update.changed, err
	})
}

func (g *Gateway) writeTranscript(w http.ResponseWriter, r *http.Request, room *room) error {
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	document, err := awaitRead(ctx, room.document)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// An error means that the client disconnected.
	_ = document.writeTo(r.Context(), g.answers, func(piece []byte) error {
		_, err := w.Write(piece)
		return err
	})
	return nil
}

// transcriptState requires the lock of its room.
type transcriptState struct {
	patcher *transcript.Patcher
	patches map[int]*patch // to the newest version, by start version
	cached  *document
}

func newTranscriptState() transcriptState { return transcriptState{patcher: transcript.NewPatcher()} }

func (s *transcriptState) apply(e event.Event) {
	before := s.patcher.Version()
	operations := s.patcher.Apply(e)
	if s.patcher.Version() != before {
		s.patches = map[int]*patch{before: {operations: operations}}
	}
}

// ok is false when the version is unknown.
func (s *transcriptState) patchFrom(version int) (p *patch, ok bool) {
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

// patch is encoded once for all viewers.
type patch struct {
	operations []transcript.Operation
	once       sync.Once
	encoded    []byte
}

func (p *patch) frame(epoch string, version int) []byte {
	p.once.Do(func() { p.encoded = frame(formatVersion(epoch, version), "patch", encode(p.operations)) })
	return p.encoded
}

func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // documents and patches always encode
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func formatVersion(epoch string, version int) string { return fmt.Sprintf("%s.%d", epoch, version) }

const noVersion = -1

// parseVersion is the inverse of formatVersion; noVersion for any other text.
func (r *room) parseVersion(text string) int {
	if number, ok := strings.CutPrefix(text, r.epoch+"."); ok {
		if version, err := strconv.Atoi(number); err == nil && version >= 0 {
			return version
		}
	}
	return noVersion
}

// document returns nil until the room has read the log. The error is why the room ended, or that
// the context does not exist.
func (r *room) document() (*document, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return nil, nil, r.err
	case !r.isLoaded:
		return nil, r.nextChange(), nil
	case r.isMissing:
		return nil, nil, fmt.Errorf("context %s: %w", r.name, client.ErrNoContext)
	}
	return r.transcript.documentNow(r.epoch, 0), nil, nil
}

type transcriptUpdate struct {
	// The changes, to be encoded without the lock of the room. Both nil: none.
	patch    *patch
	document *document

	version int // after the changes
	deltas  int // of the room, after the changes
	status  status
	isReady bool            // the room has read the log
	changed <-chan struct{} // closed when there are further changes
}

// transcriptAfter returns a patch, or the document when the version is unknown. The error is why
// the room ended.
func (r *room) transcriptAfter(version int) (transcriptUpdate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	update := transcriptUpdate{version: version, deltas: r.deltas, status: r.status, isReady: r.isLoaded}
	update.status.waiting = r.waiting.view
	newest := r.transcript.patcher.Version()
	if !r.isLoaded || version == newest {
		if r.err != nil {
			return update, r.err
		}
		update.changed = r.nextChange()
		return update, nil
	}
	if p, ok := r.transcript.patchFrom(version); ok {
		update.patch, update.version, update.changed = p, newest, r.nextChange()
	} else {
		d := r.transcript.documentNow(r.epoch, documentTTL)
		update.document, update.version, update.changed = d, d.version, r.nextChange()
	}
	if update.version != newest || r.err != nil {
		update.changed = closedChannel
	}
	return update, nil
}
