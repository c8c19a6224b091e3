package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// viewers has one viewer, and then a thousand, follow a context's transcript through a gateway during long answers of
// fifty tokens per second.
func viewers(r *runner) error {
	gateway, err := r.StartGateway(r.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = gateway.Stop() }()
	var memory samples
	for _, n := range []int{1, r.times(1000)} {
		var delays samples
		if delays, memory, err = r.view(gateway, fmt.Sprintf("viewed-by-%d", n), n, []*http.Client{http.DefaultClient}, ""); err != nil {
			return err
		}
		name := "viewer_delta_ms"
		if n > 1 {
			name = "viewers_1000_delta_ms"
		}
		r.report.add(name, "ms", delays)
	}
	r.report.add("gateway_rss_1000_mb", "MB", memory)
	// The growth from the first answer to the last.
	r.report.add("gateway_rss_1000_growth_mb", "MB", samples{memory[len(memory)-1] - memory[0]})
	return nil
}

// viewersOverHTTP2 has a thousand viewers with a token over TLS: a hundred browsers, each with ten windows on a connection.
func viewersOverHTTP2(r *runner) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	certFile, keyFile, tokens := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens.jsonl")
	if err := writeCertificate(certFile, keyFile); err != nil {
		return err
	}
	token, _, err := auth.TokenFile(tokens).Create(auth.Identity{Subject: "bench", Roles: []auth.Role{auth.RoleRead}}, 0)
	if err != nil {
		return err
	}
	gateway, err := r.StartGateway(r.ctx, "--auth", "tokens", "--tokens", tokens, "--tls-cert", certFile, "--tls-key", keyFile)
	if err != nil {
		return err
	}
	defer func() { _ = gateway.Stop() }()
	browsers := make([]*http.Client, r.times(100))
	for i := range browsers {
		browsers[i] = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
		defer browsers[i].CloseIdleConnections()
	}
	delays, memory, err := r.view(gateway, "viewed-over-http2", r.times(1000), browsers, token)
	if err != nil {
		return err
	}
	r.report.add("viewers_1000_http2_delta_ms", "ms", delays)
	r.report.add("gateway_rss_1000_http2_mb", "MB", memory)
	r.report.add("gateway_rss_1000_http2_growth_mb", "MB", samples{memory[len(memory)-1] - memory[0]})
	return nil
}

// writeCertificate writes a certificate for 127.0.0.1 and its key.
func writeCertificate(certFile, keyFile string) error {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// view has n viewers of some answers in a context. It returns the delays of their tokens, and the memory of the gateway after each answer.
func (r *runner) view(gateway *rig.Process, name string, n int, browsers []*http.Client, token string) (delays, memory samples, err error) {
	t := r.context(name)
	if _, err := t.turn(message("begin-" + name)); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	a := &audience{
		ctx: ctx, fail: cancel, browsers: browsers, token: token, url: gateway.Ready["url"] + "/contexts/" + t.name + "/transcript", saw: make(chan []time.Duration),
	}
	defer a.watching.Wait()
	defer cancel(nil)
	if err := a.grow(n); err != nil {
		return nil, nil, err
	}
	for round := range r.times(5) {
		m := rig.Message{Key: fmt.Sprintf("%s-%d", name, round), Tokens: 250, Every: 20 * time.Millisecond}
		if _, err := t.turn(m); err != nil {
			return nil, nil, err
		}
		for range n {
			select {
			case one := <-a.saw:
				if len(one) != m.Tokens {
					return nil, nil, fmt.Errorf("a viewer saw %d tokens of %d", len(one), m.Tokens)
				}
				delays.add(one...)
			case <-ctx.Done():
				return nil, nil, context.Cause(ctx)
			case <-time.After(turnTimeout):
				return nil, nil, errors.New("a viewer did not see the end of the answer")
			}
		}
		used, _ := gateway.Memory()
		memory = append(memory, float64(used)/mb)
	}
	return delays, memory, nil
}

// audience are viewers of a transcript, which follow it as the web page does.
type audience struct {
	ctx      context.Context
	fail     context.CancelCauseFunc
	browsers []*http.Client
	token    string // "": none
	url      string
	viewers  int
	watching sync.WaitGroup
	saw      chan []time.Duration // the delays of the tokens of an answer, from each viewer
}

// grow returns when n viewers have received the document.
func (a *audience) grow(n int) error {
	var connecting sync.WaitGroup
	for ; a.viewers < n; a.viewers++ {
		connecting.Add(1)
		browser := a.browsers[a.viewers%len(a.browsers)]
		a.watching.Go(func() {
			connected := sync.OnceFunc(connecting.Done)
			defer connected()
			if err := a.watch(browser, connected); err != nil && a.ctx.Err() == nil {
				a.fail(fmt.Errorf("view %s: %w", a.url, err))
			}
		})
	}
	connecting.Wait()
	return context.Cause(a.ctx)
}

// watch takes the times of tokens from each patch, and the entry with the token usage as the end of the answer. It does
// not decode patches, which keeps the CPU use of a thousand viewers low.
func (a *audience) watch(browser *http.Client, connected func()) error {
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Accept-Encoding", "identity")
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	response, err := browser.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	var delays []time.Duration
	var last time.Time // when the model wrote the newest token
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		now := time.Now()
		switch kind, data, _ := strings.Cut(line, ": "); {
		case kind == "event" && data == "document\n":
			if len(delays) > 0 {
				return errors.New("received a document in the middle of an answer")
			}
			connected()
		case kind == "data" && strings.HasPrefix(data, "["):
			// The other words of a patch are no times. The whole answer at the end repeats its tokens.
			for word := range strings.FieldsFuncSeq(data, func(r rune) bool { return r == ' ' || r == '"' }) {
				if at, ok := rig.WrittenAt(word); ok && at.After(last) {
					delays, last = append(delays, now.Sub(at)), at
				}
			}
			if strings.Contains(data, `"token_usage_info"`) && len(delays) > 0 {
				select {
				case a.saw <- delays:
				case <-a.ctx.Done():
					return nil
				}
				delays = nil
			}
		}
	}
}
