package e2e

import (
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// killableServer is a Temporal server that a test can kill.
type killableServer interface {
	Address() string
	kill()
	// start starts the server and returns when it is ready.
	start()
}

type ownServer struct {
	*devserver.Server
	t       *testing.T
	options devserver.Options
}

func startOwnServer(t *testing.T) *ownServer {
	t.Helper()
	s := &ownServer{t: t, options: devserver.Options{Command: command, DataDir: t.TempDir(), Unsynced: true}}
	s.start()
	require.NoError(t, register(s.Address()))
	return s
}

func (s *ownServer) start() {
	s.t.Helper()
	running, err := devserver.Start(s.t.Context(), s.options)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, running.Stop()) })
	s.Server = running
	_, port, err := net.SplitHostPort(s.Address())
	require.NoError(s.t, err)
	s.options.Port, err = strconv.Atoi(port)
	require.NoError(s.t, err)
}

func (s *ownServer) kill() {
	s.t.Helper()
	require.NoError(s.t, syscall.Kill(s.PID(), syscall.SIGKILL))
	<-s.Done()
}

// supervisedServer is the shared server. deploy/local.sh restarts it when it is killed.
type supervisedServer struct {
	running
	t       *testing.T
	pidFile string
}

func findSupervisedServer(t *testing.T) supervisedServer {
	t.Helper()
	topologyOnly(t)
	pidFile := os.Getenv(pidFileVariable)
	if pidFile == "" {
		t.Skipf("server restart tests, %s is not set", pidFileVariable)
	}
	return supervisedServer{server.(running), t, pidFile}
}

func (s supervisedServer) kill() {
	s.t.Helper()
	text, err := os.ReadFile(s.pidFile)
	require.NoError(s.t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(s.t, err)
	connection, err := net.Dial("tcp", s.Address())
	require.NoError(s.t, err)
	defer connection.Close()
	require.NoError(s.t, connection.SetDeadline(time.Now().Add(testTimeout)))
	require.NoError(s.t, syscall.Kill(pid, syscall.SIGKILL))
	// The server has exited when its connections close.
	_, err = io.Copy(io.Discard, connection)
	require.NotErrorIs(s.t, err, os.ErrDeadlineExceeded)
}

func (s supervisedServer) start() {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return register(s.Address()) == nil }, testTimeout, 50*time.Millisecond)
}

func TestContextsSurviveAKilledDevServer(t *testing.T) {
	devServerOnly(t)
	t.Parallel()
	testContextSurvivesAKilledServer(t, startOwnServer(t))
}

// It kills the shared server, so it is not parallel.
func TestContextsSurviveAKilledServerOnPostgreSQL(t *testing.T) {
	testContextSurvivesAKilledServer(t, findSupervisedServer(t))
}

func testContextSurvivesAKilledServer(t *testing.T, own killableServer) {
	t.Helper()
	gates := map[string]*llmtest.Gate{"Two": llmtest.NewGate(), "Three": llmtest.NewGate(), "Four": llmtest.NewGate()}
	w := newWorldOn(t, environment{temporal: own.Address()},
		// A worker may repeat a request after a long outage.
		llmtest.Func(func(r llmtest.Request) llmtest.Step {
			answer := llmtest.Answer("Answer", " to "+r.LastUser())
			if gate := gates[r.LastUser()]; gate != nil {
				return answer.HoldAfter(1, gate)
			}
			return answer
		}))
	w.worker()
	c := w.open("restarted")
	w.say(c, "One")

	// While idle.
	own.kill()
	own.start()
	turn := w.ask(c, "Two")
	turn.underWay()

	// During an answer, which continues after the restart.
	own.kill()
	own.start()
	gates["Two"].Open()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())
	require.Equal(t, "Answer to Two", deltaText(turn.seen))

	// During an answer, which ends during the outage.
	turn = w.ask(c, "Three")
	turn.underWay()
	own.kill()
	gates["Three"].Open()
	turn.until(func(e event.Event) bool {
		d, ok := e.Body.(event.TextDelta)
		return ok && d.Delta == " to Three"
	})
	own.start()
	require.Equal(t, event.TagLLMRequestCompleted, turn.rest().Tag())

	// During an answer, which is interrupted afterwards.
	turn = w.ask(c, "Four")
	turn.underWay()
	own.kill()
	own.start()
	w.say(c, "Five")
	require.Equal(t, event.TagLLMRequestInterrupted, turn.rest().Tag())

	require.Equal(t, []string{"Answer to One", "Answer to Two", "Answer to Three", "Answer to Five"},
		w.requireConsistentLog(c, "One", "Two", "Three", "Four", "Five"))
	w.replay(c, "")
}
