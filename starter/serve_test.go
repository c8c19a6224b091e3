package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
)

// serve runs the command until the returned function stops it and returns the exit code and the
// log.
func serve(t *testing.T, f *fakeContext, flags ...string) (at serving, stop func() (code int, logged string)) {
	t.Helper()
	return serveOf(t, &fakeClient{context: f}, flags...)
}

func serveOf(t *testing.T, c *fakeClient, flags ...string) (at serving, stop func() (code int, logged string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, line := io.Pipe()
	var log bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, &app{
			streams: streams{in: strings.NewReader(""), out: line, err: &log},
			dial:    c.dial,
		}, append([]string{"serve", "--listen", "127.0.0.1:0", "--index-dir", t.TempDir(), "--json"}, flags...))
	}()
	require.NoError(t, json.NewDecoder(out).Decode(&at))
	return at, func() (int, string) {
		cancel()
		return <-code, log.String()
	}
}

func TestServeServesUntilStopped(t *testing.T) {
	at, stop := serve(t, newFake(t, []event.Body{}))
	require.True(t, at.Deltas)
	response, err := http.Post(at.URL+"/contexts/demo/events", "application/json",
		strings.NewReader(`{"_tag":"UserMessageEvent","content":"Hello"}`))
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusAccepted, response.StatusCode, "%s", body)
	require.Contains(t, string(body), `"eventIds":["demo:0001"]`)
	code, logged := stop()
	require.Zero(t, code, "stopping it is not an error")
	require.Contains(t, logged, `"path":"/contexts/demo/events"`)
	require.NotContains(t, logged, "Hello")
}

func TestServePrintsAnAddressThatClientsCanUse(t *testing.T) {
	for want, flags := range map[string][]string{
		"^http://localhost:[0-9]+$":         {"--listen", ":0"},
		"^http://chronicle.example:[0-9]+$": {"--listen", "[::]:0", "--host", "chronicle.example:443", "--host", "other.example"},
		"^http://example.com:[0-9]+$":       {"--listen", "0.0.0.0:0", "--public-url", "https://example.com/chat/"},
		"^http://127.0.0.1:[0-9]+$":         {"--host", "chronicle.example"},
	} {
		at, stop := serve(t, newFake(t), append(flags, "--auth", "none", "--metrics", "0.0.0.0:0")...)
		require.Regexp(t, want, at.URL)
		require.Regexp(t, "^http://localhost:[0-9]+/metrics$", at.Metrics)
		stop()
	}
}

func TestServeAcceptsTheHostOfItsPublicURL(t *testing.T) {
	at, stop := serve(t, newFake(t), "--host", "a.example", "--public-url", "https://example.com:8443/chat")
	defer stop()
	for host, want := range map[string]int{"a.example": http.StatusOK, "example.com:8443": http.StatusOK, "b.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.URL+"/healthz", nil)
		require.NoError(t, err)
		r.Host = host
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, host)
	}
}

func TestServeRejectsNamesThatNoClientUses(t *testing.T) {
	for _, flags := range [][2]string{
		{"--host", ""}, {"--host", "a/b"}, {"--host", "https://a.example"}, {"--host", "*.example"}, {"--host", "a.example,b.example"},
		{"--public-url", "example.com/chat"}, {"--public-url", "https:///chat"}, {"--public-url", "https://a.example/?b"}, {"--public-url", "https://a.example/#b"},
	} {
		got := starter(t, newFake(t), "", "serve", flags[0], flags[1])
		require.Equal(t, exit.Usage, got.code, flags)
		require.Contains(t, got.errOut, fmt.Sprintf("%s %q: want a ", flags[0], flags[1]))
	}
}

func TestServeLimitsTheRateOfEachClientOfAProxy(t *testing.T) {
	at, stop := serve(t, newFake(t), "--rate", "1e-9", "--trust-proxy", "127.0.0.1", "--trust-proxy", "10.0.0.0/8")
	for _, ask := range []struct {
		forwarded string
		status    int
	}{{"192.0.2.1", 200}, {"192.0.2.1, 10.0.0.1", 429}, {"192.0.2.2", 200}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.URL+"/contexts", nil)
		require.NoError(t, err)
		r.Header.Set("X-Forwarded-For", ask.forwarded)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, ask.status, response.StatusCode, ask.forwarded)
	}
	_, logged := stop()
	require.Contains(t, logged, `"client":"192.0.2.2"`)
}

func TestServeCheckReportsWhetherTheGatewayIsReady(t *testing.T) {
	at, stop := serve(t, newFake(t))
	address := strings.TrimPrefix(at.URL, "http://")
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	check := func(listen string) (code int, printed string) {
		var log bytes.Buffer
		code = execute(t.Context(), &app{streams: streams{out: io.Discard, err: &log}}, []string{"serve", "--check", "--listen", listen})
		return code, log.String()
	}
	for _, listen := range []string{address, "0.0.0.0:" + port, ":" + port} {
		code, printed := check(listen)
		require.Zero(t, code, "%s: %s", listen, printed)
	}
	stop()
	code, printed := check(address)
	require.Equal(t, 1, code)
	require.Contains(t, printed, "check the gateway: ")
	code, _ = check("8080")
	require.Equal(t, 2, code)
	t.Setenv("CHRONICLE_CONFIG", filepath.Join(t.TempDir(), "chronicle.toml"))
	require.NoError(t, os.WriteFile(os.Getenv("CHRONICLE_CONFIG"), []byte("[gateway]\nrate = nan\n"), 0o600))
	code, printed = check(address)
	require.Equal(t, 2, code)
	require.Contains(t, printed, "chronicle.toml: gateway.rate NaN: want a number like 50")
}

func TestServeLogsFailedExports(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	_, stop := serve(t, newFake(t))
	_, logged := stop()
	for line := range strings.Lines(logged) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Contains(t, logged, "cannot export")
}

func TestServeLogsTheConnectionToNATS(t *testing.T) {
	var out, log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var config client.Config
	execute(ctx, &app{
		streams: streams{in: strings.NewReader(""), out: &out, err: &log},
		dial: func(_ context.Context, c client.Config) (contextClient, error) {
			config = c
			return &fakeClient{context: newFake(t), dead: true, liveErr: errors.New("refused (do this)")}, nil
		},
	}, []string{"serve", "--listen", "127.0.0.1:0", "--index-dir", t.TempDir(), "--json"})
	require.Contains(t, out.String(), `"deltas":false`)
	config.Logger.Warn("lost the connection to NATS", "error", io.ErrUnexpectedEOF)
	config.Logger.Info("connected to NATS")
	for line := range strings.Lines(log.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Contains(t, log.String(), `"msg":"no live deltas (see --nats-url): each answer appears when it is complete","error":"refused (do this)"`)
	require.Contains(t, log.String(), `"msg":"lost the connection to NATS","error":"unexpected EOF"`)
	require.Contains(t, log.String(), `"msg":"connected to NATS"`)
}

func TestServeReportsAPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	got := starter(t, newFake(t), "", "serve", "--listen", address)
	require.Equal(t, exit.Failure, got.code)
	require.Equal(t, "starter: --listen "+address+": the address is in use (stop the program that uses it, or choose another port)\n", got.errOut)
	require.Empty(t, got.out, "no ready line")
}

func TestServeSaysWhatToDoAboutAnAddressOfAnotherMachine(t *testing.T) {
	got := starter(t, newFake(t), "", "serve", "--listen", "192.0.2.1:0", "--auth", "none")
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.errOut, " (choose an address of this machine and a port that you may use, like 127.0.0.1:8080)\n")
}

func TestServeLogsTheErrorOfItsStartAsJSON(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for name, test := range map[string]struct {
		listen, want string
		err          error
		code         int
	}{
		"an address in use":    {taken.Addr().String(), "the address is in use (stop the program that uses it, or choose another port)", nil, exit.Failure},
		"unreachable Temporal": {"127.0.0.1:0", "(start it with \"make run\" or \"worker --dev\", or set --address)", client.ErrUnreachable, exit.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			var log, out bytes.Buffer
			code := execute(t.Context(), &app{
				streams: streams{in: strings.NewReader(""), out: &out, err: &log},
				dial:    func(context.Context, client.Config) (contextClient, error) { return nil, test.err },
			}, []string{"serve", "--json", "--index-dir", t.TempDir(), "--listen", test.listen})
			require.Equal(t, test.code, code)
			var line struct{ Level, Msg, Error string }
			require.NoError(t, json.Unmarshal(log.Bytes(), &line), log.String())
			require.Equal(t, []string{"error", "failed"}, []string{line.Level, line.Msg})
			require.Contains(t, line.Error, test.want)
		})
	}
}

func TestServeReloadsItsLogLevel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chronicle.toml")
	configure := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	configure("[gateway]\nlisten = \"127.0.0.1:0\"\njson = true\nlog_level = \"error\"\n")
	ctx, cancel := context.WithCancel(t.Context())
	out, ready := io.Pipe()
	log, written := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, &app{
			streams: streams{in: strings.NewReader(""), out: ready, err: written},
			dial: func(context.Context, client.Config) (contextClient, error) {
				return &fakeClient{context: newFake(t)}, nil
			},
		}, []string{"serve", "--index-dir", t.TempDir(), "--config", file})
		_ = written.Close()
	}()
	var at serving
	require.NoError(t, json.NewDecoder(out).Decode(&at))
	lines := bufio.NewScanner(log)
	reload := func(text string) string {
		configure(text)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		require.True(t, lines.Scan())
		return lines.Text()
	}
	require.Contains(t, reload("[gateway]\nlisten = \"127.0.0.1:0\"\njson = true\nlog_level = \"info\"\n"), `"msg":"reloaded the configuration","log_level":"info"`)
	require.Contains(t, reload("[gateway]\nlog_level = 3\n"), `chronicle.toml: gateway.log_level 3: want debug, info, warn or error`)
	require.Contains(t, reload("[gateway]\nlisten = \"127.0.0.1:0\"\nhost = [\"a.example\"]\n"), "reloaded the configuration")
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), `"settings":["gateway.host","gateway.json"]`)
	cancel()
	for lines.Scan() {
	}
	require.Zero(t, <-code)
}

func TestServeWithoutAConfigurationFileHasNothingToReload(t *testing.T) {
	t.Setenv(config.VariableFile, "")
	var log bytes.Buffer
	a := &app{}
	newRootCommand(a)
	require.NoError(t, a.config.Load(os.Getenv))
	level := zap.NewAtomicLevelAt(zap.InfoLevel)
	a.reload(level, logging.New(&log, true, level))
	require.Contains(t, log.String(), `"msg":"there is no configuration file to reload (set --config and restart)"`)
	require.NotContains(t, log.String(), "reloaded")
}

func TestPrintedConfigurationOfAClient(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_API_KEY", "BLOB_URL", "NATS_USER", "NATS_CREDS", "NATS_TOKEN"} {
		t.Setenv(name, "")
	}
	t.Setenv("NATS_URL", "nats://me:s3cr3t@nats:4222")
	t.Setenv("NATS_PASSWORD", "s3cr3t")
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("chronicle.toml", []byte("address = \"temporal:7233\"\n[gateway]\nrate = 5\n[providers.house]\n"), 0o600))
	got := starter(t, newFake(t), "", "--config", "chronicle.toml", "--print-config", "--namespace", "of-flag")
	require.Zero(t, got.code, got.errOut)
	golden.File(t, filepath.Join(home, "testdata", "printed.golden"), got.out)
	require.Equal(t, got.out, starter(t, newFake(t), "", "list", "--config", "chronicle.toml", "--print-config", "--namespace", "of-flag").out)
}

var home, _ = os.Getwd()
