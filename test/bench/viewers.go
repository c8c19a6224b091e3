package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	browsers := []*http.Client{http.DefaultClient}
	alone, err := r.view(gateway, "viewed-by-1", 1, browsers, "")
	if err != nil {
		return err
	}
	r.report.add("viewer_delta_ms", "ms", alone.delays)
	crowd, err := r.view(gateway, "viewed-by-1000", r.times(1000), browsers, "")
	if err != nil {
		return err
	}
	crowd.report(r.report, "")
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
	crowd, err := r.view(gateway, "viewed-over-http2", r.times(1000), browsers, token)
	if err != nil {
		return err
	}
	crowd.report(r.report, "_http2")
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

// view has n viewers follow some answers in a context, as the web page does.
func (r *runner) view(gateway *rig.Process, name string, n int, browsers []*http.Client, token string) (v viewed, err error) {
	t := r.context(name)
	if _, err := t.turn(message("begin-" + name)); err != nil {
		return v, err
	}
	streams, err := openAll(n, func(i int) (*stream, error) {
		request, err := http.NewRequestWithContext(r.ctx, http.MethodGet, gateway.Ready["url"]+"/contexts/"+t.name+"/transcript", nil)
		if err != nil {
			return nil, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		return open(browsers[i%len(browsers)], request, time.Now())
	})
	if err != nil {
		return v, err
	}
	defer closeAll(streams)
	_, collections, err := r.Heap(r.ctx, gateway)
	if err != nil {
		return v, err
	}
	// The heap of a crowd is compared after two collections, which take more answers.
	isEnough := func(round int) bool {
		return round >= r.times(5) && (n == 1 || len(v.heap) > 1) || round >= r.times(30)
	}
	for round := 0; !isEnough(round); round++ {
		m := rig.Message{Key: fmt.Sprintf("%s-%d", name, round), Tokens: 250, Every: 20 * time.Millisecond}
		if _, err := t.say(m); err != nil {
			return v, err
		}
		delays, err := readAll(streams, `"token_usage_info"`, m.Tokens)
		if err != nil {
			return v, err
		}
		used, _ := gateway.Memory()
		v.delays, v.resident = append(v.delays, delays...), append(v.resident, float64(used)/mb)
		goal, now, err := r.Heap(r.ctx, gateway)
		if err != nil {
			return v, err
		}
		if now > collections {
			collections, v.heap = now, append(v.heap, goal/mb)
		}
	}
	return v, nil
}

// viewed has the delays of tokens in ms, and in MB the memory of the gateway after each answer, and the size that its heap
// may reach, after answers during which it was collected.
type viewed struct{ delays, resident, heap samples }

func (v viewed) report(to *report, kind string) {
	to.add("viewers_1000"+kind+"_delta_ms", "ms", v.delays)
	to.add("gateway_rss_1000"+kind+"_mb", "MB", v.resident)
	if n := len(v.heap); n > 1 {
		to.add("gateway_heap_1000"+kind+"_growth_mb", "MB", samples{v.heap[n-1] - v.heap[0]})
	}
}
