package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// sendMessage sends a message, which the hostile model answers as its text says.
func sendMessage(ctx context.Context, u *user) error {
	return u.postEvent(ctx, event.UserMessage{Content: pick(u.rand, rig.HostileAnswers()...) + " " + words(u.rand, size(u.rand))})
}

func postInput(ctx context.Context, u *user) error {
	data, key := u.input()
	if u.rand.IntN(4) == 0 {
		second, other := u.input()
		return u.post(ctx, []byte("["+string(data)+","+string(second)+"]"), nil, key, other)
	}
	return u.post(ctx, data, nil, key)
}

func postMalformed(ctx context.Context, u *user) error {
	body, header := u.malformed(), http.Header{}
	switch u.rand.IntN(6) {
	case 0:
		header.Set("Content-Type", pick(u.rand, "text/plain", "application/json; charset=utf-16", "multipart/form-data", ""))
	case 1:
		header.Set("Content-Encoding", "gzip")
	case 2:
		header["Idempotency-Key"] = []string{pick(u.rand, "", "a", strings.Repeat("k", 300), "\x7f", `"`)}
	}
	return u.post(ctx, body, header)
}

// sendRequest sends a request to a path of the context, or to another one.
func sendRequest(ctx context.Context, u *user) error {
	r := u.rand
	method := pick(r, http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions, "BREW")
	path := pick(r, "/events?from=x", "/events?limit=-1", "/events?limit=99999999999999999999", "/events?from="+u.place(), "/state?%zz", "/transcript?version=-1",
		"/transcript?version=0.99999999999999999999", "/events/"+u.place()+"/attachment", "/events/../../../limits", "/interrupt", "/nothing", "?q=%00", "/..;/",
		"?status=x&limit=0", "/events/%2e%2e/attachment")
	if method == http.MethodDelete {
		path = pick(r, "/events", "/state") // the context itself: closeSession
	}
	request, err := http.NewRequestWithContext(ctx, method, u.url(path), bytes.NewReader(u.malformed()))
	if err != nil {
		return err
	}
	for range r.IntN(4) {
		request.Header.Set(pick(r, "Accept", "Last-Event-ID", "Range", "If-Match", "Origin", "Content-Type", "X-Forwarded-For", "Traceparent", "Cookie"),
			pick(r, "application/json", "bytes=0-,5-1", strings.Repeat("a", 8<<10), "*/*;q=x", "00-"+strings.Repeat("0", 32)+"-1-zz", "http://evil.example", u.place()))
	}
	if pick(r, true, false, false) {
		request.Host = "evil.example"
	}
	status, _, err := u.do(request)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s %s: %d", method, path, status)
}

// repeatKey sends a client event id again, with another event: only if the first use was lost, it is accepted.
func repeatKey(ctx context.Context, u *user) error {
	u.mu.Lock()
	used := u.journal.sent[max(0, len(u.journal.sent)-100):] // contexts deduplicate among the newest 1,000
	u.mu.Unlock()
	if len(used) == 0 {
		return errNothing
	}
	note := event.Note{Kind: event.NoteSystem, Content: words(u.rand, 10)}
	e := event.New(note)
	e.ClientEventID = used[u.rand.IntN(len(used))].key
	data, err := e.MarshalJSON()
	if err == nil {
		err = u.post(ctx, data, nil)
	}
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		if newest := &u.journal.sent[len(u.journal.sent)-1]; newest.outcome == recorded { // else the first use may be recorded later
			newest.content = contentOf(note)
		}
	}
	return err
}

// uploadSlowly announces a large body and sends a part. The connection stays open.
func uploadSlowly(ctx context.Context, u *user) error {
	conn, err := u.dialGateway(ctx)
	if err != nil {
		return err
	}
	announced := pick(u.rand, 100, 1<<20, 31<<20, 1<<40)
	_, err = fmt.Fprintf(conn, "POST /contexts/%s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		u.name(), announced, words(u.rand, min(announced, 1<<20)-100))
	return err
}

// stallStream opens a stream and never reads it.
func stallStream(ctx context.Context, u *user) error {
	conn, err := u.dialGateway(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "GET /contexts/%s/%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", u.name(), pick(u.rand, "events", "transcript"))
	return err
}

// dialGateway returns a connection that is closed with the life of the user.
func (u *user) dialGateway(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(u.gateway.Ready["url"], "http://"))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(u.life, func() { _ = conn.Close() })
	return conn, nil
}

func read(ctx context.Context, u *user) error {
	response, err := u.get(ctx, pick(u.rand, "/transcript", "/events", "/state", "/events?limit=1000"), "application/json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if response.StatusCode == http.StatusInternalServerError {
		u.fail("%s: %s", response.Request.URL, response.Status)
	}
	if err == nil {
		err = fmt.Errorf("%d, %d bytes", response.StatusCode, n)
	}
	return err
}
