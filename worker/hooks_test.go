package main_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestContextsAreCheckedByWebhooks(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil || r.Header.Get("webhook-signature") == "":
			w.WriteHeader(http.StatusBadRequest)
		case strings.Contains(string(body), "Something bad"):
			fmt.Fprint(w, `{"refuse":"off topic"}`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(endpoint.Close)
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "hooks.toml")
	require.NoError(t, os.WriteFile(secret, []byte("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "[[hooks]]\nname = \"topic\"\nurl = %q\nsecret = %q\nstages = [\"before\"]\n", endpoint.URL, "file:"+secret), 0o600))
	worker := dev(t, t.TempDir(), "--hooks", file)
	facts := worker.ready()
	require.Equal(t, "topic", facts["hooks"])
	demo, err := dial(t, facts).Open("demo")
	require.NoError(t, err)
	ask := func(text string) (kind event.FailureKind) {
		for e, err := range demo.Ask(t.Context(), event.New(event.UserMessage{Content: text})) {
			require.NoError(t, err)
			if failed, ok := e.Body.(event.LLMRequestFailed); ok {
				kind = failed.Kind
			}
		}
		return kind
	}
	require.Empty(t, ask("Hello"))
	require.Equal(t, event.FailureRefusedByHook, ask("Something bad"))
}
