package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// keySet tells an outage of the provider from an invalid signature, which [oidc.IDTokenVerifier.Verify] does not.
type keySet struct{ remote oidc.KeySet }

func newKeySet(client *http.Client, keysURL string) keySet {
	return keySet{oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client), keysURL)}
}

func (k keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, jwt)
	if errors.As(err, new(*url.Error)) || ctx.Err() != nil {
		*ctx.Value(outageKey{}).(*error) = err
	}
	return payload, err
}

type outageKey struct{}

// withOutage returns a context for a verification, which sets outage if the keys could not be read.
func withOutage(ctx context.Context) (_ context.Context, outage *error) {
	outage = new(error)
	return context.WithValue(ctx, outageKey{}, outage), outage
}

// transport repeats the response to a GET request for keysAge: a token with an unknown key makes go-oidc read the keys,
// so a client with invalid tokens could make the gateway flood the provider.
type transport struct {
	mu    sync.Mutex
	url   string // of the last GET request
	body  []byte
	until time.Time
}

const (
	keysAge = time.Second
	maxKeys = 1 << 20 // bytes
)

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return http.DefaultTransport.RoundTrip(r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.url != r.URL.String() || time.Now().After(t.until) {
		body, err := get(r)
		if err != nil {
			return nil, err
		}
		t.url, t.body, t.until = r.URL.String(), body, time.Now().Add(keysAge)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(t.body)), Request: r,
	}, nil
}

func get(r *http.Request) ([]byte, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxKeys))
}
