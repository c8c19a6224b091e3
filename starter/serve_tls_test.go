package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate writes a certificate for 127.0.0.1 and its key, and returns a client that trusts it alone.
func certificate(t *testing.T, certFile, keyFile string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "gateway"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
}

func TestServeOverTLSWithHTTP2(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := certificate(t, cert, key)
	at, stop := serve(t, newFake(t), "--tls-cert", cert, "--tls-key", key)
	require.True(t, strings.HasPrefix(at.URL, "https://127.0.0.1:"), at.URL)
	response, err := first.Get(at.URL + "/contexts")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "HTTP/2.0", response.Proto)
	require.Equal(t, "max-age=31536000", response.Header.Get("Strict-Transport-Security"))

	var log bytes.Buffer
	check := func() int {
		return execute(t.Context(), &app{streams: streams{out: io.Discard, err: &log}},
			[]string{"serve", "--check", "--listen", strings.TrimPrefix(at.URL, "https://"), "--tls-cert", cert, "--tls-key", key})
	}
	require.Zero(t, check(), log.String())

	second := certificate(t, cert, key)
	_, err = second.Get(at.URL + "/healthz")
	require.NoError(t, err, "the new certificate")
	require.NoError(t, os.WriteFile(cert, nil, 0o600))
	second.CloseIdleConnections()
	_, err = second.Get(at.URL + "/healthz")
	require.NoError(t, err, "an invalid file changes nothing")
	first.CloseIdleConnections()
	_, err = first.Get(at.URL + "/healthz")
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	_, logged := stop()
	require.Equal(t, 1, strings.Count(logged, "the certificate was not read again and stays as it was"), logged)
	require.Equal(t, 2, strings.Count(logged, `"msg":"read the certificate"`), logged)
}
