// Package deploy_test tests the configuration of NATS.
package deploy_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// asNATS makes a copy of the test binary run a NATS server.
const asNATS = "CHRONICLE_TEST_AS_NATS"

func TestMain(m *testing.M) {
	if os.Getenv(asNATS) != "" {
		if err := serveNATS(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serveNATS(args []string) error {
	options, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ContinueOnError), args, nil, nil, nil)
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
	return nil
}

// natsServer is a running NATS server.
type natsServer struct {
	url       string
	passwords map[string]string // files, by user
	stop      func()
}

// startNATS runs nats.sh with passwords and the log in dir.
func startNATS(t *testing.T, dir string, env ...string) *natsServer {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	bin, ports := t.TempDir(), t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexport %s=1\nexec '%s' \"$@\"\n", asNATS, executable)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "nats-server"), []byte(script), 0o755))
	n := &natsServer{passwords: map[string]string{"worker": filepath.Join(dir, "worker"), "viewer": filepath.Join(dir, "viewer")}}
	log, err := os.OpenFile(filepath.Join(dir, "nats.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command("sh", "nats.sh", "--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir", ports)
	cmd.Env = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "NATS_CONFIG=nats.conf",
		"WORKER_PASSWORD_FILE=" + n.passwords["worker"], "VIEWER_PASSWORD_FILE=" + n.passwords["viewer"],
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = log, log
	server, err := child.Start(cmd, child.Options{OwnGroup: true})
	require.NoError(t, err)
	n.stop = sync.OnceFunc(func() { _ = server.Stop(time.Minute) })
	t.Cleanup(n.stop)
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(ports, "*.ports"))
		if err != nil || len(files) == 0 {
			return false
		}
		text, err := os.ReadFile(files[0])
		var found struct{ Nats []string }
		if err != nil || json.Unmarshal(text, &found) != nil {
			return false
		}
		n.url = found.Nats[0]
		return true
	}, time.Minute, 10*time.Millisecond)
	return n
}

func TestNATSHasAPasswordForEachRole(t *testing.T) {
	dir := t.TempDir()
	n := startNATS(t, dir)
	require.Equal(t, []string{"viewer", "worker"}, slices.Sorted(maps.Keys(n.passwords)))
	contents := map[string]string{}
	for user, file := range n.passwords {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Regexp(t, `^[0-9a-f]{64}$`, string(content))
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		contents[user] = string(content)
	}
	require.NotEqual(t, contents["worker"], contents["viewer"])
	n.stop()

	require.NoError(t, os.WriteFile(n.passwords["viewer"], nil, 0o600)) // as after a full disk
	n = startNATS(t, dir)
	for user, file := range n.passwords {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, user == "worker", contents[user] == string(content), "the password of a %s", user)
		connect(t, n, user, "default")
		log, err := os.ReadFile(filepath.Join(dir, "nats.log"))
		require.NoError(t, err)
		require.Contains(t, string(log), "Server is ready")
		require.NotContains(t, string(log), string(content))
	}
}

func connect(t *testing.T, n *natsServer, user, namespace string) *stream.Conn {
	t.Helper()
	conn, err := stream.Connect(n.url, stream.Options{Namespace: namespace, Auth: stream.Auth{User: user, PasswordFile: n.passwords[user]}})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.NoError(t, conn.ConnectError())
	return conn
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestRolesOfNATSMayDoWhatTheyNeed(t *testing.T) {
	n := startNATS(t, t.TempDir())
	worker, viewer := connect(t, n, "worker", "a.b"), connect(t, n, "viewer", "a.b")
	_, err := worker.RoundTrip(within(t))
	require.NoError(t, err)
	_, err = viewer.AskRoundTrip(within(t))
	require.NoError(t, err)

	stops := make(chan stream.Stop, 10)
	b := worker.Broadcast(stream.Attempt{ContextName: "de.mo", RequestID: "de.mo:r0001", Number: 1}, func(s stream.Stop) { stops <- s })
	b.Publish("Hello")
	require.NoError(t, worker.Flush(within(t)))
	notices := make(chan string, 10)
	_, err = viewer.SubscribeNotices(true, "", func(name string) { notices <- name })
	require.NoError(t, err)
	require.NoError(t, viewer.Flush(within(t)))
	worker.Notice("de.mo")
	require.Equal(t, "de.mo", <-notices)
	sub, err := viewer.Subscribe("de.mo")
	require.NoError(t, err)
	next := func() event.TextDelta {
		t.Helper()
		for {
			select {
			case m := <-sub.Messages():
				if d, ok := sub.Decode(m); ok {
					return d.TextDelta
				}
			case <-within(t).Done():
				t.Fatal("no delta came")
			}
		}
	}
	require.Equal(t, "Hello", next().Delta, "a viewer gets the text so far")

	stop := stream.Stop{RequestID: "de.mo:r0001", Attempt: 1, Reason: event.ReasonNewUserInput}
	require.ErrorIs(t, viewer.Stop(within(t), "de.mo", stop), stream.ErrNoWorker, "a viewer cannot stop an answer")
	forged := viewer.Broadcast(stream.Attempt{ContextName: "de.mo", RequestID: "de.mo:r0001", Number: 2}, nil)
	forged.Publish("forged")
	viewer.PublishProgress("de.mo", event.ToolProgress{RequestID: "de.mo:r0001", Text: "forged"})
	require.NoError(t, viewer.Flush(within(t)))
	require.Empty(t, stops)
	b.Publish(" world")
	require.Equal(t, " world", next().Delta, "a viewer cannot publish deltas")

	require.NoError(t, connect(t, n, "worker", "a.b").Stop(within(t), "de.mo", stop), "another worker can stop an answer")
	require.Equal(t, stop, <-stops)
}

func TestRolesOfNATSMayDoNothingElse(t *testing.T) {
	n := startNATS(t, t.TempDir())
	type rights struct{ publish, subscribe bool }
	tests := map[string]struct{ worker, viewer rights }{
		"chronicle.default._.demo.delta":    {worker: rights{true, true}, viewer: rights{false, true}},
		"chronicle.default._.demo.ask":      {worker: rights{true, true}, viewer: rights{true, false}},
		"chronicle.default._.demo.stop":     {worker: rights{true, true}},
		"chronicle.default._.demo.notice":   {worker: rights{true, false}, viewer: rights{false, true}},
		"chronicle.default._.demo.other":    {},
		"chronicle.default._.demo.delta.x":  {},
		"chronicle.default.acme.demo.delta": {worker: rights{true, true}, viewer: rights{false, true}},
		"other.default._.demo.delta":        {},
		"_INBOX.someone":                    {worker: rights{true, true}, viewer: rights{false, true}},
		"$SYS.REQ.SERVER.PING":              {},
		"$JS.API.STREAM.CREATE.chronicle":   {},
	}
	for subject, want := range tests {
		for user, want := range map[string]rights{"worker": want.worker, "viewer": want.viewer} {
			require.Equal(t, want, rights{
				publish:   isAllowed(t, n, user, func(c *nats.Conn) error { return c.Publish(subject, nil) }),
				subscribe: isAllowed(t, n, user, func(c *nats.Conn) error { _, err := c.SubscribeSync(subject); return err }),
			}, "%s on %s", user, subject)
		}
	}
	for _, user := range []string{"worker", "viewer"} {
		require.False(t, isAllowed(t, n, user, func(c *nats.Conn) error { _, err := c.SubscribeSync(">"); return err }), user)
	}
	_, err := nats.Connect(n.url)
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

func TestAViewerOfATenantReceivesOnlyItsDeltas(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("nats.conf")
	require.NoError(t, err)
	config, password := filepath.Join(dir, "nats.conf"), filepath.Join(dir, "acme")
	require.NoError(t, os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "\n    #", "\n    ")), 0o600))
	require.NoError(t, os.WriteFile(password, []byte("secret"), 0o600))
	n := startNATS(t, dir, "NATS_CONFIG="+config, "NATS_ACME_PASSWORD=secret")
	n.passwords["acme"] = password

	worker, viewer := connect(t, n, "worker", "default"), connect(t, n, "acme", "default")
	worker.Broadcast(stream.Attempt{ContextName: "acme/demo", RequestID: "demo:r0001", Number: 1}, nil).Publish("Hello")
	require.NoError(t, worker.Flush(within(t)))
	sub, err := viewer.Subscribe("acme/demo")
	require.NoError(t, err)
	select {
	case m := <-sub.Messages():
		d, ok := sub.Decode(m)
		require.True(t, ok)
		require.Equal(t, "Hello", d.TextDelta.Delta, "a viewer gets the text so far")
	case <-within(t).Done():
		t.Fatal("no delta came")
	}
	require.True(t, isAllowed(t, n, "acme", func(c *nats.Conn) error { _, err := c.SubscribeSync("chronicle.default.acme.*.notice"); return err }))
	publish := func(subject string) func(c *nats.Conn) error {
		return func(c *nats.Conn) error { return c.Publish(subject, nil) }
	}
	subscribe := func(subject string) func(c *nats.Conn) error {
		return func(c *nats.Conn) error { _, err := c.SubscribeSync(subject); return err }
	}
	for _, subject := range []string{"_INBOX.>", "_INBOX.viewer.x", "chronicle.*.*.*.delta", "chronicle.default._.demo.delta", "chronicle.default.other.demo.delta", "chronicle.default.*.*.notice"} {
		require.False(t, isAllowed(t, n, "acme", subscribe(subject)), subject)
	}
	for _, subject := range []string{"chronicle.default.acme.demo.delta", "chronicle.default.acme.demo.notice", "chronicle.default.acme.demo.stop", "chronicle.default.other.demo.ask", "_INBOX.viewer.x"} {
		require.False(t, isAllowed(t, n, "acme", publish(subject)), subject)
	}
}

// isAllowed reports whether the server allows what do does on a connection of its own.
func isAllowed(t *testing.T, n *natsServer, user string, do func(*nats.Conn) error) bool {
	t.Helper()
	password, err := os.ReadFile(n.passwords[user])
	require.NoError(t, err)
	conn, err := nats.Connect(n.url, nats.UserInfo(user, string(password)), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, do(conn))
	require.NoError(t, conn.FlushTimeout(time.Minute))
	err = conn.LastError()
	if err != nil {
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
	}
	return err == nil
}
