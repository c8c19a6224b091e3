package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// uplink is a connection with deadlines on which a body arrives in chunks, with a pause
// before each, in the time of a synctest bubble.
type uplink struct {
	*httptest.ResponseRecorder
	body            io.Reader
	size, left      int // of a chunk
	pause           time.Duration
	readBy, writeBy time.Time
}

func (u *uplink) Read(p []byte) (int, error) {
	if u.left == 0 {
		if time.Now().Add(u.pause).After(u.readBy) {
			time.Sleep(time.Until(u.readBy)) // bubble time
			return 0, os.ErrDeadlineExceeded
		}
		time.Sleep(u.pause) // bubble time
		u.left = u.size
	}
	n, err := u.body.Read(p[:min(len(p), u.left)])
	u.left -= n
	return n, err
}

func (u *uplink) Write(b []byte) (int, error) {
	if time.Now().After(u.writeBy) {
		return 0, os.ErrDeadlineExceeded
	}
	return u.ResponseRecorder.Write(b)
}

func (u *uplink) SetReadDeadline(by time.Time) error  { u.readBy = by; return nil }
func (u *uplink) SetWriteDeadline(by time.Time) error { u.writeBy = by; return nil }

func TestAnUploadContinuesWhileDataArrives(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, test := range []struct {
		name         string
		length, size int
		pause        time.Duration
		status       int
		after        time.Duration
	}{
		{"a file of 5 MiB at 75 kbit/s", 7 * mib, 4 * kib, 400 * time.Millisecond, 202, 0},
		{"a message on a slow connection", 10 * kib, kib, 2 * time.Second, 202, 0},
		{"no data", kib, kib, time.Hour, 408, 30 * time.Second},
		{"byte by byte", 10 * kib, 1, time.Second, 408, 30 * time.Second},
		{"a connection that stalls", mib, 100 * kib, 31 * time.Second, 408, 30 * time.Second},
		{"a body that takes too long", 3 * mib, 64 * kib, 29 * time.Second, 408, 15 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newLog()
				g := gateway.New(fakeClient{log: log}, gateway.Options{})
				defer g.Close()
				body := strings.Replace(hello, "Hello", strings.Repeat("x", test.length), 1)
				u := &uplink{ResponseRecorder: httptest.NewRecorder(), body: strings.NewReader(body), size: test.size, pause: test.pause}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/contexts/demo/events", u)
				r.Header.Set("Content-Type", "application/json")
				began := time.Now()
				g.ServeHTTP(u, r)
				require.Equal(t, test.status, u.Code, u.Body)
				if test.status == http.StatusAccepted {
					require.Len(t, log.sent, 1)
					require.Zero(t, u.readBy, "the deadline for reading must be cleared")
					return
				}
				require.Equal(t, test.after, time.Since(began))
				require.Contains(t, u.Body.String(), "urn:chronicle:problem:timeout")
				require.Empty(t, log.sent)
			})
		})
	}
}
