package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// post sends a body in the background.
func (w *webServer) post(body io.Reader) <-chan reply {
	replies := make(chan reply, 1)
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.server.URL+"/contexts/demo/events", body)
	require.NoError(w.t, err)
	r.Header.Set("Content-Type", "application/json")
	go func() {
		defer close(replies)
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return // the test has ended
		}
		defer response.Body.Close()
		data, _ := io.ReadAll(response.Body)
		replies <- reply{response.StatusCode, response.Header, string(data)}
	}()
	return replies
}

func TestBodiesInFlightAreBoundedAcrossClients(t *testing.T) {
	log := newLog()
	sending, sent := make(chan struct{}, 10), make(chan struct{})
	log.send = func([]event.Event) (client.Receipt, error) {
		sending <- struct{}{}
		<-sent
		return client.Receipt{ClientEventIDs: []string{"one"}}, nil
	}
	w := serve(t, fakeClient{log: log}, gateway.Options{MaxBody: 1 << 20, BodyBytes: 2 << 20})
	body := `{"_tag":"UserMessageEvent","content":"` + strings.Repeat("x", 900<<10) + `"}`
	// A body counts against the limit until its request is answered.
	first, second := w.post(strings.NewReader(body)), w.post(strings.NewReader(body))
	<-sending
	<-sending
	third := <-w.post(strings.NewReader(body))
	require.Equal(t, http.StatusServiceUnavailable, third.status, third.body)
	require.Equal(t, "1", third.header.Get("Retry-After"))
	require.Contains(t, third.body, "urn:chronicle:problem:busy")
	require.Len(t, log.sent, 2)
	short := w.post(strings.NewReader(hello))
	<-sending // a short body still fits
	close(sent)
	for _, replies := range []<-chan reply{first, second, short} {
		require.Equal(t, http.StatusAccepted, (<-replies).status)
	}
	require.Equal(t, http.StatusAccepted, (<-w.post(strings.NewReader(body))).status)
}

func TestADeclaredLengthReservesNothing(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{MaxBody: 1 << 20, BodyBytes: 1 << 20})
	for range 8 {
		body, writer := io.Pipe()
		defer writer.Close()
		w.post(body)
		_, err := writer.Write([]byte(`{`))
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusAccepted, (<-w.post(strings.NewReader(hello))).status)
}

func TestTheResponseLimitBoundsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := event.UserMessage{Content: strings.Repeat("x", 6<<20)}
		g := gateway.New(fakeClient{log: newLog(long, long, long)}, gateway.Options{AnswerBytes: 1}) // raised to 20 MiB
		defer g.Close()
		var wait sync.WaitGroup
		defer wait.Wait()
		hold := func() {
			slow := newDownlink(t, "/contexts/demo/events?limit=1", 64<<10, 10*time.Second)
			wait.Go(func() { g.ServeHTTP(slow, slow.request) })
			synctest.Wait()
		}
		get := func() (status, events int, body string) {
			got := ask(t.Context(), g, http.MethodGet, "/contexts/demo/events", "")
			var page struct{ Events []json.RawMessage }
			require.NoError(t, json.Unmarshal(got.Body.Bytes(), &page))
			return got.Code, len(page.Events), got.Body.String()
		}
		_, n, _ := get()
		require.Equal(t, 2, n, "an unshared limit allows two events")
		hold()
		hold()
		_, n, body := get()
		require.Equal(t, 1, n)
		require.Contains(t, body, "from=demo%3A0001")
		hold()
		status, _, body := get()
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, "urn:chronicle:problem:busy")
	})
}

func TestAttachmentsWaitForTheResponseLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog(attachment("image/png", "a.png", strings.Repeat("x", 1<<20)))
		g := gateway.New(fakeClient{log: log}, gateway.Options{AnswerBytes: 1})
		defer g.Close()
		const path = "/contexts/demo/events/demo:0001/attachment"
		slow := newDownlink(t, path, 64<<10, 10*time.Second)
		var wait sync.WaitGroup
		wait.Go(func() { g.ServeHTTP(slow, slow.request) })
		synctest.Wait()
		began := time.Now()
		next := ask(t.Context(), g, http.MethodGet, path, "")
		require.Equal(t, http.StatusServiceUnavailable, next.Code, "the wait times out before the other download ends")
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Contains(t, next.Body.String(), "urn:chronicle:problem:busy")
		wait.Wait()
		require.Equal(t, 1<<20, slow.Body.Len())
		require.Equal(t, http.StatusOK, ask(t.Context(), g, http.MethodGet, path, "").Code)
	})
}

// downlink is a connection with deadlines whose client reads a chunk at a time and pauses
// after each, in the time of a synctest bubble.
type downlink struct {
	*httptest.ResponseRecorder
	request  *http.Request
	size     int
	pause    time.Duration
	writeBy  time.Time
	deadline atomic.Int32 // number of calls of SetWriteDeadline
}

func newDownlink(t *testing.T, path string, size int, pause time.Duration) *downlink {
	d := &downlink{ResponseRecorder: httptest.NewRecorder(), size: size, pause: pause}
	d.request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	d.request.Body = http.NoBody
	return d
}

func (d *downlink) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), d.size)]
		if time.Now().Add(d.pause).After(d.writeBy) {
			time.Sleep(time.Until(d.writeBy)) // bubble time
			return written, os.ErrDeadlineExceeded
		}
		time.Sleep(d.pause) // bubble time
		n, _ := d.ResponseRecorder.Write(part)
		written += n
		b = b[n:]
	}
	return written, nil
}

func (d *downlink) SetReadDeadline(time.Time) error { return nil }

func (d *downlink) SetWriteDeadline(by time.Time) error {
	d.deadline.Add(1)
	d.writeBy = by
	return nil
}

func TestADownloadContinuesWhileTheClientReads(t *testing.T) {
	const mib = 1 << 20
	for _, path := range []string{"/contexts/demo/events?limit=1", "/contexts/demo/events/demo:0002/attachment", transcriptPath} {
		for _, test := range []struct {
			name  string
			size  int
			pause time.Duration
			cut   bool
		}{
			{"slow", 64 << 10, 14 * time.Second, false},
			{"in small chunks", 1 << 10, 200 * time.Millisecond, false},
			{"stalled", 64 << 10, time.Hour, true},
			{"byte by byte", 1, time.Second, true},
		} {
			t.Run(test.name+" "+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					log := newLog(event.UserMessage{Content: strings.Repeat("x", 2*mib)}, attachment("image/png", "a.png", strings.Repeat("x", 2*mib)))
					g := gateway.New(fakeClient{log: log}, gateway.Options{})
					defer g.Close()
					d := newDownlink(t, path, test.size, test.pause)
					began := time.Now()
					g.ServeHTTP(d, d.request)
					if test.cut {
						require.Less(t, d.Body.Len(), mib)
						require.LessOrEqual(t, time.Since(began), time.Minute)
						return
					}
					require.GreaterOrEqual(t, d.Body.Len(), 2*mib)
					require.Greater(t, time.Since(began), 6*time.Minute)
				})
			})
		}
	}
}

type countingClient struct {
	fakeClient
	pings *atomic.Int32
	slow  time.Duration
}

func (c countingClient) Ping(ctx context.Context) error {
	c.pings.Add(1)
	select {
	case <-time.After(c.slow):
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestReadinessIsProbedOncePerSecond(t *testing.T) {
	for _, test := range []struct {
		name   string
		err    error
		slow   time.Duration
		status int
	}{
		{"up", nil, 100 * time.Millisecond, 200},
		{"unreachable", client.ErrUnreachable, 0, 503},
		{"unresponsive", nil, time.Hour, 504},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pings atomic.Int32
				g := gateway.New(countingClient{fakeClient{log: newLog(), err: test.err}, &pings, test.slow}, gateway.Options{})
				defer g.Close()
				began := time.Now()
				for range 5 {
					var requests sync.WaitGroup
					for range 100 {
						requests.Go(func() { require.Equal(t, test.status, ask(t.Context(), g, http.MethodGet, "/readyz", "").Code) })
					}
					requests.Wait()
					time.Sleep(300 * time.Millisecond) // bubble time
				}
				require.LessOrEqual(t, int(pings.Load()), 1+int(time.Since(began)/time.Second), "after %v", time.Since(began))
				require.Positive(t, pings.Load())
			})
		})
	}
}
