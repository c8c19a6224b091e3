package e2e

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth/authtest"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// writeCertificate writes a certificate for 127.0.0.1 and its key.
func writeCertificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// startServe starts starter serve with flags and returns its URL.
func (w *world) startServe(flags ...string) string {
	w.t.Helper()
	url, _ := w.serveProcess(append([]string{"--index-dir", w.t.TempDir()}, flags...)...)
	return url
}

// serveProcess starts starter serve with flags, and returns its URL and a function that kills it.
func (w *world) serveProcess(flags ...string) (url string, kill func()) {
	w.t.Helper()
	file, err := built()
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.ctx, file, w.withAddresses(append([]string{"serve", "--listen", "127.0.0.1:0", "--rate", "-1", "--json"}, flags...))...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	isKilled := false
	w.t.Cleanup(func() {
		if !isKilled {
			_ = cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
			require.NoError(w.t, cmd.Wait())
		}
	})
	var ready struct{ URL string }
	require.NoError(w.t, json.NewDecoder(out).Decode(&ready))
	return ready.URL, func() {
		isKilled = true
		require.NoError(w.t, cmd.Process.Kill())
		_ = cmd.Wait() // its error is the signal
	}
}

func TestPeopleOfTwoTenantsSignInAtAProviderOverTLS(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	w := newWorld(t, llmtest.Func(echo))
	w.worker()
	dir := t.TempDir()
	cert, key, secret := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "secret")
	writeCertificate(t, cert, key)
	require.NoError(t, os.WriteFile(secret, []byte(authtest.ClientSecret), 0o600))
	p := authtest.Start(t, nil)
	url := w.startServe("--tls-cert", cert, "--tls-key", key, "--auth", "oidc", "--oidc-issuer", p.Issuer, "--oidc-client-id", authtest.ClientID,
		"--oidc-client-secret-file", secret, "--oidc-claim", "tenant=org", "--default-role", "write")

	tenants := []string{"acme-" + w.queue, "beta-" + w.queue}
	hosts := []string{"127.0.0.1", "localhost"} // each has cookies of its own
	tabs := make([]*browsertest.Tab, len(tenants))
	for i, tenant := range tenants {
		p.SignsIn(map[string]any{"sub": "ann", "org": tenant})
		tabs[i] = browser.Open(strings.Replace(url, "127.0.0.1", hosts[i], 1) + "/#shared")
		tabs[i].Click("#provider")
		tabs[i].Await(`document.title === "Provider"`)
		tabs[i].Click("#approve")
		tabs[i].Await(`document.querySelector("#person-name")?.innerText === "ann · ` + tenant + `" && !document.querySelector("#empty").hidden`)
		tabs[i].Type("#text", "I am of "+tenant+"\r")
		awaitAnswer(tabs[i], "You said: I am of "+tenant)
	}
	for i, tenant := range tenants {
		require.Equal(t, "user: I am of "+tenant+"\nassistant: You said: I am of "+tenant, messages(tabs[i]))
		require.Contains(t, w.starter("", "export", "-n", tenant+"/shared"), "I am of "+tenant)
	}
	var protocol string
	tabs[0].Eval(`performance.getEntriesByType("navigation")[0].nextHopProtocol`, &protocol)
	require.Equal(t, "h2", protocol)
	tabs[0].Click("#sign-out")
	tabs[0].Await(`!document.querySelector("#sign-in").hidden`)
}
