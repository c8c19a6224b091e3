package stream_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// guardedServer starts a NATS server that requires authentication or TLS.
func guardedServer(t *testing.T, options *server.Options) (address string) {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(options)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	return s.Addr().String()
}

func write(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// certificates writes a CA certificate and a certificate for 127.0.0.1 signed by it to files.
type certificates struct {
	ca, cert, key string
	pool          *x509.CertPool
	pair          tls.Certificate
}

func newCertificates(t *testing.T) certificates {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	c := certificates{cert: write(t, "cert.pem", string(certPEM)), key: write(t, "key.pem", string(keyPEM)), pool: x509.NewCertPool()}
	c.ca = c.cert
	require.True(t, c.pool.AppendCertsFromPEM(certPEM))
	c.pair, err = tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	return c
}

// newCredentials returns credentials of a user and a server that accepts them.
func newCredentials(t *testing.T) (file string, options *server.Options) {
	t.Helper()
	pair := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		key, err := create()
		require.NoError(t, err)
		public, err := key.PublicKey()
		require.NoError(t, err)
		return key, public
	}
	operatorKey, operatorID := pair(nkeys.CreateOperator)
	accountKey, accountID := pair(nkeys.CreateAccount)
	userKey, userID := pair(nkeys.CreateUser)
	operator := jwt.NewOperatorClaims(operatorID)
	accountJWT, err := jwt.NewAccountClaims(accountID).Encode(operatorKey)
	require.NoError(t, err)
	userJWT, err := jwt.NewUserClaims(userID).Encode(accountKey)
	require.NoError(t, err)
	seed, err := userKey.Seed()
	require.NoError(t, err)
	content, err := jwt.FormatUserConfig(userJWT, seed)
	require.NoError(t, err)
	accounts := &server.MemAccResolver{}
	require.NoError(t, accounts.Store(accountID, accountJWT))
	return write(t, "user.creds", string(content)), &server.Options{
		TrustedOperators: []*jwt.OperatorClaims{operator}, AccountResolver: accounts,
	}
}

func TestConnectionsAreAuthenticated(t *testing.T) {
	const secret = "s3cr3t-0123456789"
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	creds, trusting := newCredentials(t)
	certs := newCertificates(t)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{certs.pair}}
	mutualTLS := &tls.Config{Certificates: []tls.Certificate{certs.pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: certs.pool}
	otherCA := newCertificates(t).ca

	byUser := &server.Options{Username: "chronicle", Password: secret}
	byToken := &server.Options{Authorization: secret}
	tests := map[string]struct {
		server *server.Options
		url    string // HOST stands for the address
		auth   stream.Auth
		env    map[string]string
		want   bool
	}{
		"a user in the URL":        {server: byUser, url: "nats://chronicle:" + secret + "@HOST", want: true},
		"a token in the URL":       {server: byToken, url: "nats://" + secret + "@HOST", want: true},
		"a user by file":           {server: byUser, auth: stream.Auth{User: "chronicle", PasswordFile: write(t, "password", secret+"\n")}, want: true},
		"a user by environment":    {server: byUser, env: map[string]string{"NATS_USER": "chronicle", "NATS_PASSWORD": secret}, want: true},
		"a user by both":           {server: byUser, auth: stream.Auth{User: "chronicle"}, env: map[string]string{"NATS_PASSWORD": secret, "NATS_TOKEN": "x"}, want: true},
		"a token by file":          {server: byToken, auth: stream.Auth{TokenFile: write(t, "token", secret)}, want: true},
		"a user by both files":     {server: byUser, auth: stream.Auth{User: "chronicle"}, env: map[string]string{"NATS_PASSWORD_FILE": write(t, "password", secret), "NATS_TOKEN_FILE": "x"}, want: true},
		"a token file by variable": {server: byToken, env: map[string]string{"NATS_TOKEN_FILE": write(t, "token", secret+"\n")}, want: true},
		"a token by environment":   {server: byToken, env: map[string]string{"NATS_TOKEN": secret}, want: true},
		"an nkey":                  {server: &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}, auth: stream.Auth{NKeyFile: write(t, "nkey", string(seed))}, want: true},
		"credentials":              {server: trusting, auth: stream.Auth{CredsFile: creds}, want: true},
		"credentials by variable":  {server: trusting, env: map[string]string{"NATS_CREDS": creds}, want: true},
		"TLS":                      {server: &server.Options{TLS: true, TLSConfig: serverTLS}, url: "tls://HOST", auth: stream.Auth{CAFile: certs.ca}, want: true},
		"TLS and a user": {
			server: &server.Options{Username: "chronicle", Password: secret, TLS: true, TLSConfig: serverTLS},
			url:    "tls://chronicle:" + secret + "@HOST", auth: stream.Auth{CAFile: certs.ca}, want: true,
		},
		"TLS with a client certificate": {
			server: &server.Options{TLS: true, TLSVerify: true, TLSConfig: mutualTLS}, url: "tls://HOST",
			env: map[string]string{"NATS_CA": certs.ca, "NATS_CERT": certs.cert, "NATS_KEY": certs.key}, want: true,
		},

		"nothing":                       {server: byUser},
		"another password":              {server: byUser, url: "nats://chronicle:" + secret + "x@HOST"},
		"another token":                 {server: byToken, env: map[string]string{"NATS_TOKEN": secret + "x"}},
		"TLS with an unknown CA":        {server: &server.Options{TLS: true, TLSConfig: serverTLS}, url: "tls://HOST"},
		"TLS with another CA":           {server: &server.Options{TLS: true, TLSConfig: serverTLS}, url: "tls://HOST", auth: stream.Auth{CAFile: otherCA}},
		"no client certificate":         {server: &server.Options{TLS: true, TLSVerify: true, TLSConfig: mutualTLS}, url: "tls://HOST", auth: stream.Auth{CAFile: certs.ca}},
		"a CA and a server without TLS": {server: byToken, auth: stream.Auth{CAFile: certs.ca}, env: map[string]string{"NATS_TOKEN": secret}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			options := *test.server
			address := guardedServer(t, &options)
			url := strings.Replace(test.url, "HOST", address, 1)
			if url == "" {
				url = "nats://" + address
			}
			auth := test.auth.WithEnv(func(name string) string { return test.env[name] })
			conn, err := stream.Connect(url, stream.Options{Auth: auth})
			require.NoError(t, err)
			defer conn.Close()
			require.Equal(t, test.want, conn.Connected())
			if !test.want {
				require.Error(t, conn.ConnectError())
				require.NotContains(t, conn.ConnectError().Error(), secret)
				return
			}
			require.NoError(t, conn.Flush(t.Context()))
		})
	}
}

func TestConnectErrorIsThatOfTheFirstAttempt(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	attempted := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		defer close(attempted)
		first, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = first.Write([]byte("INFO {\"auth_required\":true}\r\n"))
		client := bufio.NewReader(first)
		for range 2 { // CONNECT and PING: closing with unread input may discard the answer
			_, _ = client.ReadString('\n')
		}
		_, _ = first.Write([]byte("-ERR 'Authorization Violation'\r\n"))
		_ = first.Close()
		second, err := listener.Accept()
		if err == nil {
			t.Cleanup(func() { _ = second.Close() })
		}
	}()
	conn, err := stream.Connect("nats://"+listener.Addr().String(), stream.Options{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	<-attempted
	require.ErrorIs(t, conn.ConnectError(), nats.ErrAuthorization)
}

func TestARefusalSaysWhatWasGivenAndWhatToSet(t *testing.T) {
	const secret = "s3cr3t-0123456789"
	file := write(t, "token", secret)
	address := guardedServer(t, &server.Options{Authorization: "another"})
	for name, test := range map[string]struct {
		url  string
		auth stream.Auth
		want string
	}{
		"nothing":       {want: "the server requires authentication (for worker --dev, set NATS_TOKEN_FILE or --nats-token-file to nats.token in its data directory; "},
		"a token":       {auth: stream.Auth{Token: secret}, want: "the server refuses the credentials ("},
		"a token file":  {auth: stream.Auth{TokenFile: file}, want: "the server refuses the token in " + file + " ("},
		"a user's file": {auth: stream.Auth{User: "me", PasswordFile: file}, want: "the server refuses user me with the password in " + file + " ("},
		"a URL":         {url: secret + "@", want: "the server refuses the credentials ("},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := stream.Connect("nats://"+test.url+address, stream.Options{Auth: test.auth})
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			require.ErrorContains(t, conn.ConnectError(), "nats: Authorization Violation: "+test.want)
			require.NotContains(t, conn.ConnectError().Error(), secret)
		})
	}
}

func TestInvalidAuthIsRejectedWithoutItsSecret(t *testing.T) {
	const secret = "s3cr3t"
	tests := map[string]struct {
		url  string
		auth stream.Auth
		want string
	}{
		"a slash in a password":   {url: "nats://me:pa/" + secret + "@host:4222", want: "nats at nats://[removed]@host:4222: invalid URL"},
		"a comma in a password":   {url: "nats://me:" + secret + "," + secret + "@host:4222", want: "nats at nats://[removed]@host:4222: invalid URL"},
		"a percent in a password": {url: "nats://me:%zz" + secret + "@host:4222", want: "nats at nats://[removed]@host:4222: invalid URL"},
		"two methods":             {url: "nats://me:" + secret + "@host", auth: stream.Auth{Token: secret}, want: "more than one authentication method"},
		"a user without password": {auth: stream.Auth{User: "me"}, want: "a user without a password"},
		"a password without user": {auth: stream.Auth{Password: secret}, want: "a password without a user"},
		"a missing password file": {auth: stream.Auth{User: "me", PasswordFile: "no/such"}, want: "password file: open no/such"},
		"an empty token file":     {auth: stream.Auth{TokenFile: os.DevNull}, want: "token file: " + os.DevNull + " is empty"},
		"a missing creds file":    {auth: stream.Auth{CredsFile: "no/such"}, want: "credentials file: stat no/such"},
		"a missing nkey file":     {auth: stream.Auth{NKeyFile: "no/such"}, want: "nkey file: open no/such"},
		"an invalid nkey":         {auth: stream.Auth{NKeyFile: write(t, "nkey", secret)}, want: "not a valid user seed"},
		"a missing CA":            {auth: stream.Auth{CAFile: "no/such"}, want: "CA file: open no/such"},
		"an invalid CA":           {auth: stream.Auth{CAFile: write(t, "ca", secret)}, want: "nats at nats://127.0.0.1:1: "},
		"a key without a cert":    {auth: stream.Auth{KeyFile: "key.pem"}, want: "require each other"},
		"an invalid certificate":  {auth: stream.Auth{CertFile: write(t, "c", secret), KeyFile: write(t, "k", secret)}, want: "certificate "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.url == "" {
				test.url = "nats://127.0.0.1:1"
			}
			_, err := stream.Connect(test.url, stream.Options{Auth: test.auth})
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func TestRedactURL(t *testing.T) {
	for url, want := range map[string]string{
		"nats://127.0.0.1:4222":                 "nats://127.0.0.1:4222",
		"nats://a:4222,tls://b:4222":            "nats://a:4222,tls://b:4222",
		"nats://me:s3cr3t@a:4222":               "nats://[removed]@a:4222",
		"tls://s3cr3t@a:4222":                   "tls://[removed]@a:4222",
		"me:s3cr3t@a":                           "nats://[removed]@a",
		"nats://me:s3/cr3t@a":                   "nats://[removed]@a",
		"nats://me:s3@cr3t@a":                   "nats://[removed]@a",
		"nats://me:s3,cr3t@a,nats://b":          "nats://[removed]@a,nats://b",
		"nats://s3cr3t:x@a, nats://me:cr3t@b":   "nats://[removed]@b",
		"nats://a:4222,nats://me:s3cr3t@b:4222": "nats://[removed]@b:4222",
	} {
		require.Equal(t, want, stream.RedactURL(url))
	}
}
