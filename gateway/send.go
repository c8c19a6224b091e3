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
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// send is POST /contexts/{name}/events.
func (g *Gateway) send(w http.ResponseWriter, r *http.Request) error {
	to, err := g.context(r)
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
		return badRequest("the body is not JSON")
	}
	if err != nil {
		return err
	}
	if key != "" {
		identify(events, key)
	}
	// Whoever goes away now has sent it all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
	defer cancel()
	sent, err := to.Send(ctx, events...)
	g.listing.change()
	if errors.Is(err, session.ErrRefused) {
		refused := problemOf(err)
		refused.ClientEventIDs = sent.ClientEventIDs
		return refused
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, sent)
	return nil
}

// body reads the JSON that a request brings, and holds it in a share.
func (g *Gateway) body(w http.ResponseWriter, r *http.Request, held *share) ([]byte, error) {
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, named := parameters["charset"]; kind != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
		return nil, problem("media-type", http.StatusUnsupportedMediaType, "Only JSON is taken", "Content-Type has to be application/json, and the text UTF-8")
	}
	if encoding := strings.Join(r.Header.Values("Content-Encoding"), ", "); encoding != "" && !strings.EqualFold(encoding, "identity") {
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 12.5.3
		return nil, problem("media-type", http.StatusUnsupportedMediaType, "Only JSON is taken",
			"Content-Encoding is %q: send the body as it is, and without that header", encoding)
	}
	control := http.NewResponseController(w) // which has deadlines already, see guard
	body, err := io.ReadAll(&upload{from: http.MaxBytesReader(w, r.Body, g.options.MaxBody), held: held, control: control, end: time.Now().Add(bodyEnd)})
	_ = control.SetWriteDeadline(time.Now().Add(answerTimeout + writeTimeout))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem("timeout", http.StatusRequestTimeout, "The body comes too slowly",
			"each %d bytes of it may take %v, and all of it %v", piece, bodyTimeout, bodyEnd)
	case errors.As(err, new(*http.MaxBytesError)), errors.As(err, new(*Problem)):
		return nil, err
	case err != nil:
		return nil, badRequest("the body cannot be read to its end")
	}
	// From here on the connection is only looked at for whether it is still there.
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// upload reads a body for as long as it comes: each piece has bodyTimeout, and all of
// it until end. What has come is held in a share.
type upload struct {
	from    io.Reader
	held    *share
	control *http.ResponseController
	end     time.Time
	// came is how much of the next piece is there.
	came int
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if busy := u.held.grow(int64(n)); busy != nil {
		return 0, busy
	}
	if u.came += n; u.came >= piece {
		u.came = 0
		deadline := time.Now().Add(bodyTimeout)
		if deadline.After(u.end) {
			deadline = u.end
		}
		// An error means that the connection has no deadlines, as in a test.
		_ = u.control.SetReadDeadline(deadline)
	}
	return n, err
}

// messageRoom is what a body may have beside the files in it.
const messageRoom = 64 << 10

// limits is GET /limits.
func (g *Gateway) limits(w http.ResponseWriter, _ *http.Request) error {
	limits := g.client.Limits()
	body := max(0, g.options.MaxBody-messageRoom) / 4 * 3 // in base64
	limits.Attachments = min(cmp.Or(limits.Attachments, body), body)
	limits.Attachment = min(limits.Attachment, limits.Attachments)
	limits.OtherAttachment = min(limits.OtherAttachment, limits.Attachments)
	writeJSON(w, http.StatusOK, struct {
		session.Limits
		MediaTypes []string `json:"mediaTypes"`
	}{limits, event.MediaTypes()})
	return nil
}

// maxIdempotencyKey is the longest Idempotency-Key in bytes.
const maxIdempotencyKey = 255

// idempotencyKey is the key of a request, or "". By the draft of the IETF
// (draft-ietf-httpapi-idempotency-key-header) it is a string in quotes; many
// clients leave them out.
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) >= 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = key[1 : len(key)-1]
	}
	if key == "" && len(r.Header.Values("Idempotency-Key")) > 0 {
		return "", badRequest("Idempotency-Key is empty")
	}
	if len(key) > maxIdempotencyKey {
		return "", badRequest("Idempotency-Key has %d bytes, at most %d are taken", len(key), maxIdempotencyKey)
	}
	return key, nil
}

// identify gives events without a ClientEventID one that is made of the key and of all
// of them. What differs in the JSON alone, like spaces, makes no other input.
func identify(events []event.Event, key string) {
	body := encode(events)
	for i := range events {
		if events[i].ClientEventID == "" {
			events[i].ClientEventID = event.KeyedID(key, body, i)
		}
	}
}
