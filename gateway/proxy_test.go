package gateway_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/agui"
	"github.com/seed-9ed7edd4/chronicle/gateway/aisdk"
)

// minCompressed is the length from which the proxy compresses a body, in bytes.
const minCompressed = 1024

// compressingProxy is a reverse proxy that compresses responses like Traefik and Caddy: it holds the
// header until the body is long enough to be compressed, unless the response must not be transformed. All
// clients of the test accept gzip.
func compressingProxy(t *testing.T, target string) *httptest.Server {
	t.Helper()
	to, err := url.Parse(target)
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("Accept-Encoding", "identity") // the proxy compresses, not the gateway
		},
		ModifyResponse: func(response *http.Response) error {
			if strings.Contains(response.Header.Get("Cache-Control"), "no-transform") {
				return nil
			}
			held := make([]byte, minCompressed)
			n, err := io.ReadFull(response.Body, held)
			body := io.MultiReader(bytes.NewReader(held[:n]), response.Body)
			if err != nil { // a short body ended
				response.Body = io.NopCloser(body)
				return nil
			}
			response.Header.Set("Content-Encoding", "gzip")
			response.Header.Del("Content-Length")
			compressed, to := io.Pipe()
			go func() {
				writer := gzip.NewWriter(to)
				_, err := io.Copy(writer, body)
				_ = writer.Close()
				_ = to.CloseWithError(err)
			}()
			response.Body = compressed
			return nil
		},
	})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return proxy
}

func TestStreamsArriveThroughACompressingProxy(t *testing.T) {
	log := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: log}, gateway.Options{})
	w.server.URL = compressingProxy(t, w.server.URL).URL
	description, err := w.server.Client().Do(w.request(http.MethodGet, "/openapi.json", ""))
	require.NoError(t, err)
	require.True(t, description.Uncompressed, "the proxy must compress what it may")
	require.Equal(t, http.StatusOK, w.reply(w.request(http.MethodGet, "/openapi.json", ""), description).status)

	events := w.view("/contexts/demo/events")
	require.Equal(t, "demo:0001", events.next().id)
	transcript := w.view("/contexts/demo/transcript")
	require.Equal(t, "document", transcript.next().kind)
	log.record(delta(0, "Good day"))
	require.Equal(t, "Good day", deltaOf(t, events.next()).Delta)
	require.Contains(t, transcript.next().data, "Good day")
	w.view("/contexts/demo/events?from=demo:0001") // no event follows at once
}

func TestLinksAreBelowThePublicPath(t *testing.T) {
	l := newLog(messages(3)...)
	w := serve(t, fakeClient{log: l, list: []client.Summary{{ContextName: "demo"}, {ContextName: "other"}}}, gateway.Options{PublicPath: "/chat"})
	require.Contains(t, w.do(http.MethodGet, "/contexts/demo/events?limit=1", "").body, `"next":"/chat/contexts/demo/events?`)
	require.Eventually(t, func() bool {
		return strings.Contains(w.do(http.MethodGet, "/contexts?limit=1", "").body, `"next":"/chat/contexts?`) &&
			strings.Contains(w.do(http.MethodGet, "/search?q=message&limit=1", "").body, `"next":"/chat/search?`)
	}, testTimeout, 10*time.Millisecond)
	require.Equal(t, "/chat/contexts/demo/turns/demo:0004", w.do(http.MethodPost, "/contexts/demo/events", hello).header.Get("Location"))
	require.Equal(t, "/chat/contexts/demo/deletion", w.do(http.MethodDelete, "/contexts/demo?purge=true", "").header.Get("Location"))
}

func TestFilesOfProtocolsAreBelowThePublicPath(t *testing.T) {
	l := newLog(event.FileAttachment{Source: event.Source{Type: event.SourceBlob, Data: []byte("hi")}, MediaType: "text/plain", FileName: "a.txt"}, event.UserMessage{Content: "Read it"})
	w := serve(t, fakeClient{log: l}, gateway.Options{PublicPath: "/chat", Protocols: []gateway.Protocol{agui.Protocol(), aisdk.Protocol()}})
	const file = `"/chat/contexts/demo/events/demo:0001/attachment"`
	require.Contains(t, w.do(http.MethodGet, "/api/chat/demo/messages", "").body, file)
	var sent client.BranchOptions
	l.branch = func(o client.BranchOptions) (client.Branched, error) {
		sent = o
		return client.Branched{}, client.ErrNoWorker
	}
	response, err := w.server.Client().Do(w.request(http.MethodPost, "/api/chat", `{"id":"demo","messageId":"demo:0002","messages":[{"id":"demo:0002","role":"user","parts":[{"type":"file","url":`+file+`},{"type":"text","text":"Read it again"}]}]}`))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "demo:0001", sent.Before)
	require.Equal(t, "hi", string(sent.Events[0].Body.(event.FileAttachment).Source.Data))
	l.record(event.SessionEnded{})
	require.Contains(t, w.do(http.MethodPost, "/ag-ui/run", `{"threadId":"demo","runId":"r1","messages":[]}`).body, file)
}
