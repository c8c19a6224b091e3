package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth/authtest"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
)

func TestServeRefusesToServeOtherMachinesWithoutAuthentication(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Zero(t, starter(t, newFake(t), "", "token", "create", "--subject", "ann", "--role", "write").code)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	const openly = "no authentication: anyone who can reach the address"
	for _, test := range []struct {
		listen    string
		auth      []string
		isRefused bool
		logs      string
	}{
		{"127.0.0.1:0", nil, false, ""},
		{"127.0.0.1:0", []string{"none"}, false, ""},
		{"localhost:0", nil, false, ""},
		{"0.0.0.0:0", nil, true, "(set --auth; or --auth none if something else decides who reaches it)"},
		{":0", nil, true, "--listen :0: anyone who can reach this address could read and write all contexts"},
		{"[::]:0", nil, true, "--listen [::]:0"},
		{"192.0.2.1:0", nil, true, "--listen 192.0.2.1:0"},
		{"chronicle.example:0", nil, true, "--listen chronicle.example:0"},
		{"0.0.0.0:0", []string{"none"}, false, openly},
		{"0.0.0.0:0", []string{"tokens"}, false, "no TLS: credentials and conversations are readable on the network"},
	} {
		args := []string{"serve", "--listen", test.listen}
		for _, method := range test.auth {
			args = append(args, "--auth", method)
		}
		ctx := stopped // after the start
		if test.isRefused {
			ctx = t.Context()
		}
		got := starterWith(t, ctx, &fakeClient{context: newFake(t)}, strings.NewReader(""), args...)
		require.Equal(t, test.isRefused, got.code == exit.Usage, "%v: %s", args, got.errOut)
		require.Contains(t, got.errOut, test.logs, args)
		require.Equal(t, test.logs == openly, strings.Contains(got.errOut, openly), args)
		require.False(t, test.isRefused && got.out != "", "%v: %s", args, got.out)
	}
}

func ask(t *testing.T, client *http.Client, url string, header ...string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(data)
}

func TestServeAcceptsTheTokensOfItsFile(t *testing.T) {
	t.Chdir(t.TempDir())
	created := starter(t, newFake(t), "", "token", "create", "--subject", "ann", "--role", "write")
	require.Zero(t, created.code, created.errOut)
	token := strings.TrimSpace(created.out)
	at, stop := serve(t, newFake(t), "--auth", "tokens", "--audit", "audit.jsonl")
	status, _ := ask(t, http.DefaultClient, at.URL+"/contexts")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = ask(t, http.DefaultClient, at.URL+"/contexts", "Authorization", "Bearer "+token)
	require.Equal(t, http.StatusOK, status)

	id := strings.Split(token, "_")[1]
	require.Zero(t, starter(t, newFake(t), "", "token", "revoke", id).code)
	status, body := ask(t, http.DefaultClient, at.URL+"/contexts", "Authorization", "Bearer "+token)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, "unknown or revoked token")

	require.NoError(t, os.Rename("audit.jsonl", "audit.1.jsonl"))
	ask(t, http.DefaultClient, at.URL+"/contexts", "X-Request-Id", "after")
	_, logged := stop()
	require.NotContains(t, logged, token)
	before, err := os.ReadFile("audit.1.jsonl")
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(before, []byte("\n")))
	require.NotContains(t, string(before), token)
	after, err := os.ReadFile("audit.jsonl")
	require.NoError(t, err)
	var entry map[string]any
	require.NoError(t, json.Unmarshal(after, &entry), "one line: %s", after)
	require.NotEmpty(t, entry["time"])
	delete(entry, "time")
	require.Equal(t, map[string]any{
		"subject": "", "tenant": "", "operation": "listContexts", "status": 401.0, "client": "127.0.0.1", "request_id": "after",
	}, entry)
	info, err := os.Stat("audit.jsonl")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestServeLimitsEachTenant(t *testing.T) {
	t.Chdir(t.TempDir())
	created := starter(t, newFake(t), "", "token", "create", "--subject", "ann", "--tenant", "acme", "--role", "write")
	require.Zero(t, created.code, created.errOut)
	bearer := "Bearer " + strings.TrimSpace(created.out)
	for _, test := range []struct {
		flags  []string
		status int
	}{
		{[]string{"--tenant-rate", "1e-9"}, http.StatusTooManyRequests},
		{[]string{"--tenant-contexts", "7"}, http.StatusForbidden},
		{[]string{"--tenant-storage", "2"}, http.StatusInsufficientStorage},
		{[]string{"--tenant-contexts", "8", "--tenant-storage", "3"}, http.StatusCreated},
	} {
		at, stop := serveOf(t, &fakeClient{context: newFake(t), usage: client.StoreUsage{Contexts: 7, Bytes: 2 << 20}},
			append(test.flags, "--auth", "tokens", "--blob-url", "file:///blobs")...)
		require.Eventually(t, func() bool { // the usage is measured in the background
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.URL+"/contexts/demo/fork", strings.NewReader(`{"at":"demo:0001","name":"copy"}`))
			require.NoError(t, err)
			r.Header.Set("Authorization", bearer)
			r.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			return response.StatusCode == test.status
		}, time.Minute, 10*time.Millisecond, test.flags)
		stop()
	}
	for want, flags := range map[string][]string{
		"--tenant-rate: requires --auth":                {"--tenant-rate", "5"},
		"--tenant-streams: requires --auth":             {"--tenant-streams", "5", "--auth", "none"},
		"--tenant-storage -1: want 1 or more":           {"--tenant-storage", "-1", "--auth", "tokens"},
		"--tenant-contexts: requires --blob-url, to":    {"--tenant-contexts", "5", "--auth", "tokens", "--blob-url", "none"},
		"--tenant-rate NaN: want a number like 50, or ": {"--tenant-rate", "nan", "--auth", "tokens"},
	} {
		got := starter(t, newFake(t), "", append([]string{"serve"}, flags...)...)
		require.Equal(t, exit.Usage, got.code, flags)
		require.Contains(t, got.errOut, want)
	}
}

func TestServeAcceptsAProviderAndAProxy(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s3cr3t-of-the-proxy\n"), 0o600))
	p := authtest.Start(t, map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": true})
	at, stop := serve(t, newFake(t), "--auth", "oidc", "--oidc-issuer", p.Issuer, "--oidc-client-id", authtest.ClientID, "--oidc-claim", "subject=email",
		"--auth", "proxy", "--proxy-secret-file", secret, "--proxy-header", "tenant=X-Org", "--group", "readers=read", "--default-role", "write")
	who := func(header ...string) (who auth.Who) {
		_, body := ask(t, http.DefaultClient, at.URL+"/auth/session", header...)
		require.NoError(t, json.Unmarshal([]byte(body), &who), body)
		return who
	}
	require.Equal(t, auth.Who{SignIn: []string{"provider"}, Required: true}, who())
	require.Equal(t, auth.Who{Subject: "ann@example.com", Roles: []auth.Role{auth.RoleWrite}, SignIn: []string{"provider"}, Required: true},
		who("Authorization", "Bearer "+p.Token(nil)))
	require.Equal(t, auth.Who{Subject: "bob", Tenant: "acme", Roles: []auth.Role{auth.RoleRead}, SignIn: []string{"provider"}, Required: true},
		who(auth.SecretHeader, "s3cr3t-of-the-proxy", "X-Forwarded-User", "bob", "X-Org", "acme", "X-Forwarded-Groups", "admin, readers"))
	_, logged := stop()
	require.NotContains(t, logged, "s3cr3t")
}

func TestServeStartsWhileItsProviderIsDown(t *testing.T) {
	p := authtest.Start(t, map[string]any{"sub": "1"})
	p.Down.Store(true)
	log, written := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, &app{
			streams: streams{in: strings.NewReader(""), out: io.Discard, err: written},
			dial: func(context.Context, client.Config) (contextClient, error) {
				return &fakeClient{context: newFake(t)}, nil
			},
		}, []string{"serve", "--listen", "127.0.0.1:0", "--index-dir", t.TempDir(), "--auth", "oidc", "--oidc-issuer", p.Issuer, "--oidc-client-id", "c"})
		_ = written.Close()
	}()
	lines := bufio.NewScanner(log)
	for lines.Scan() && !strings.Contains(lines.Text(), "sign-in at the provider fails until it responds") {
	}
	require.Contains(t, lines.Text(), p.Issuer)
	cancel()
	for lines.Scan() {
	}
	require.Zero(t, <-code)
}

func TestSessionsOfAGatewayWithAKeyOutliveIt(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("key", []byte(strings.Repeat("k", 32)+"\n"), 0o600))
	token := strings.TrimSpace(starter(t, newFake(t), "", "token", "create", "--subject", "ann", "--role", "read").out)
	cookie := ""
	for _, test := range []struct {
		flags  []string
		status int
	}{
		{[]string{"--session-key-file", "key"}, http.StatusOK},
		{[]string{"--session-key-file", "key"}, http.StatusOK},
		{nil, http.StatusUnauthorized},
	} {
		at, stop := serve(t, newFake(t), append(test.flags, "--auth", "tokens")...)
		if cookie == "" {
			response, err := http.Post(at.URL+"/auth/session", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			cookie = response.Cookies()[0].Name + "=" + response.Cookies()[0].Value
		}
		status, _ := ask(t, http.DefaultClient, at.URL+"/contexts", "Cookie", cookie)
		require.Equal(t, test.status, status, test.flags)
		stop()
	}
}

func TestALostAuditEntryIsLogged(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	a := &app{}
	newRootCommand(a)
	require.NoError(t, a.config.Load(os.Getenv))
	a.gateway.Audit = filepath.Join(dir, "state", "audit.jsonl")
	_, _, err := a.newAuditLog(zap.NewNop())
	require.ErrorContains(t, err, "--audit: open ")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	audit, closeAudit, err := a.newAuditLog(logging.New(&log, true, zap.NewAtomicLevel()))
	require.NoError(t, err)
	defer closeAudit()
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "state")))
	audit.Info("")
	require.Contains(t, log.String(), "an entry of the audit log was lost")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	audit.Info("", "subject", "ann")
	content, err := os.ReadFile(a.gateway.Audit)
	require.NoError(t, err)
	require.Contains(t, string(content), `"subject":"ann"`)
}
