package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// sendEvents sends an event, or an array of events that is accepted or rejected as a whole.
//
// After a 202 response, only a reset or a termination of the workflow from outside can lose the events, in the cases
// that docs/limits.md names. A client that received no response can repeat the request with the same `Idempotency-Key`.
// The body is JSON in UTF-8 without a Content-Encoding. It must arrive within 15 minutes, and each 64 KiB of it within
// 30 seconds.
func (g *Gateway) sendEvents(w http.ResponseWriter, r *http.Request) error {
	c, err := g.context(r)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	held := share{of: g.bodies}
	defer held.release()
	body, err := g.body(w, r, &held)
	if err != nil {
		return err
	}
	events, err := event.DecodeInput(body)
	if err != nil && !json.Valid(body) {
		return badRequest("the body is not valid JSON")
	}
	if err != nil {
		return err
	}
	sent, err := g.submit(r, c, events, key)
	if err != nil {
		return err
	}
	g.locateTurn(w, c.Name(), events, sent)
	writeJSON(w, http.StatusAccepted, sent)
	return nil
}

// submit sends events that the sender may send. It completes even if the client disconnects. Without an idempotency key,
// key is "".
func (g *Gateway) submit(r *http.Request, c named, events []event.Event, key string) (client.Receipt, error) {
	if err := g.authorize(identityOf(r), events); err != nil {
		return client.Receipt{}, err
	}
	if key != "" {
		assignIDs(events, key)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	if !slices.ContainsFunc(events, func(e event.Event) bool { return e.Tag() != event.TagApprovalDecided }) {
		if err := c.find(ctx); err != nil { // there is no call to decide about
			return client.Receipt{}, err
		}
	}
	sent, err := g.send(ctx, c, identityOf(r), events)
	if err != nil {
		return sent, &inputError{err, sent.ClientEventIDs}
	}
	if len(sent.EventIDs) == 0 {
		tenantOf(r).rooms.showStored(c.Name())
	}
	return sent, nil
}

// send sends events to a context. One that seems to be new gets an owner with them; if it has one, that one stays.
func (g *Gateway) send(ctx context.Context, c named, identity auth.Identity, events []event.Event) (client.Receipt, error) {
	owner := g.ownerOfNew(identity)
	if owner == "" || len(events) == 0 || !c.isNew(ctx) {
		return c.Send(ctx, events...)
	}
	owns := event.New(event.SetDetails{Owner: owner})
	owns.ClientEventID = event.KeyedIDs("owner "+owner, encode(owns))(0) // concurrent first inputs record it once
	if len(events) == event.MaxInputEvents {
		if _, err := c.Send(ctx, owns); err != nil {
			return client.Receipt{}, err
		}
		return c.Send(ctx, events...)
	}
	sent, err := c.Send(ctx, append(events, owns)...)
	return sent.First(len(events)), err
}

func (g *Gateway) body(w http.ResponseWriter, r *http.Request, held *share) ([]byte, error) {
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, ok := parameters["charset"]; kind != "application/json" || ok && !strings.EqualFold(charset, "utf-8") {
		return nil, problem(problemMediaType, http.StatusUnsupportedMediaType, "Unsupported media type", "Content-Type must be application/json, encoded in UTF-8")
	}
	if encoding := strings.Join(r.Header.Values("Content-Encoding"), ", "); encoding != "" && !strings.EqualFold(encoding, "identity") {
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 12.5.3
		return nil, problem(problemMediaType, http.StatusUnsupportedMediaType, "Unsupported media type",
			"Content-Encoding %q is not supported: send the body without it", encoding)
	}
	control := http.NewResponseController(w) // guard has set deadlines
	body, err := io.ReadAll(&upload{from: http.MaxBytesReader(w, r.Body, g.options.MaxBody), held: held, control: control, end: time.Now().Add(bodyEnd)})
	_ = control.SetWriteDeadline(time.Now().Add(answerTimeout + writeTimeout))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem(problemTimeout, http.StatusRequestTimeout, "The body arrives too slowly",
			"each %d bytes may take %v and the whole body %v", chunkBytes, bodyTimeout, bodyEnd)
	case errors.As(err, new(*http.MaxBytesError)), errors.As(err, new(*Problem)):
		return nil, err
	case err != nil:
		return nil, badRequest("the body ended early")
	}
	// From here on the server reads only to detect a disconnect.
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// upload reads a body and counts it against the limit of all bodies. Each chunk may take bodyTimeout,
// the whole body until end.
type upload struct {
	from     io.Reader
	held     *share
	control  *http.ResponseController
	end      time.Time
	received int
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if busy := u.held.grow(int64(n)); busy != nil {
		return 0, busy
	}
	if u.received += n; u.received >= chunkBytes {
		u.received = 0
		deadline := time.Now().Add(bodyTimeout)
		if deadline.After(u.end) {
			deadline = u.end
		}
		_ = u.control.SetReadDeadline(deadline)
	}
	return n, err
}

const messageRoom = 64 << 10 // bytes of a body that are reserved for everything but files

type limits struct {
	client.Limits
	// MediaTypes are those that models can be shown. A model may support only some of them. `*` stands for any
	// characters except a slash.
	MediaTypes []string `json:"mediaTypes"`
}

// readLimits reads the maximum sizes of files sent as the `data` of a FileAttachmentEvent.
//
// A blob store raises the limits, most of all for media types that models can be shown.
func (g *Gateway) readLimits(w http.ResponseWriter, _ *http.Request) error {
	files := g.client.Limits()
	body := max(0, g.options.MaxBody-messageRoom) / 4 * 3 // without base64
	files.Attachments = min(cmp.Or(files.Attachments, body), body)
	files.Attachment = min(files.Attachment, files.Attachments)
	files.OtherAttachment = min(files.OtherAttachment, files.Attachments)
	writeJSON(w, http.StatusOK, limits{files, event.MediaTypes()})
	return nil
}

const maxIdempotencyKey = 255

// idempotencyKey accepts the quoted string of draft-ietf-httpapi-idempotency-key-header, and a key
// without quotes, as many clients send it.
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) >= 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = key[1 : len(key)-1]
	}
	if key == "" && len(r.Header.Values("Idempotency-Key")) > 0 {
		return "", badRequest("Idempotency-Key is empty")
	}
	if len(key) > maxIdempotencyKey {
		return "", badRequest("Idempotency-Key has %d bytes (at most %d)", len(key), maxIdempotencyKey)
	}
	return key, nil
}

// The ids derive from the key and all events, not from the formatting of the JSON.
func assignIDs(events []event.Event, key string) {
	id := event.KeyedIDs(key, encode(events))
	for i := range events {
		if events[i].ClientEventID == "" {
			events[i].ClientEventID = id(i)
		}
	}
}
