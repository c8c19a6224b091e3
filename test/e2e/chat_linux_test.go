package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/child"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// chat is "starter chat" in a pseudo-terminal.
type chat struct {
	w        *world
	terminal *os.File
	program  *child.Process
	done     <-chan struct{} // closed when the chat has ended

	mu      sync.Mutex
	written string        // without escape sequences; parts that did not change are not repeated
	changed chan struct{} // closed and replaced after each change
}

// chat starts a chat of a user.
func (w *world) chat(c *client.Context, user string) *chat {
	w.t.Helper()
	file, err := built()
	require.NoError(w.t, err)
	terminal, program := openTerminal(w.t)
	cmd := exec.CommandContext(w.ctx, file, w.withAddresses([]string{"chat", "-n", c.Name()})...)
	cmd.Env = append(os.Environ(), "USER="+user, "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	started, err := child.Start(cmd, child.Options{OwnGroup: true})
	require.NoError(w.t, err)
	require.NoError(w.t, program.Close())
	s := &chat{w: w, terminal: terminal, program: started, done: started.Done(), changed: make(chan struct{})}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read()
	}()
	w.t.Cleanup(func() {
		require.NoError(w.t, started.Stop(testTimeout))
		<-read
		_ = terminal.Close() // the test may have closed it
		if w.t.Failed() {
			w.t.Logf("the chat wrote:\n%s", s.text())
		}
	})
	return s
}

// openTerminal returns both ends of a pseudo-terminal with 24 rows of 200 cells.
func openTerminal(t *testing.T) (terminal, program *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	raw, err := terminal.SyscallConn() // Fd would keep Close from ending a read
	require.NoError(t, err)
	control := func(request uintptr, argument unsafe.Pointer) {
		var failed syscall.Errno
		require.NoError(t, raw.Control(func(fd uintptr) {
			_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument))
		}))
		require.Zero(t, failed)
	}
	var unlocked, number int32
	size := [4]uint16{24, 200}
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return terminal, program
}

// read reads until the program has ended, when reading fails.
func (s *chat) read() {
	var raw strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := s.terminal.Read(buffer)
		if err != nil {
			return
		}
		raw.Write(buffer[:n])
		s.mu.Lock()
		s.written = ansi.Strip(raw.String())
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
}

func (s *chat) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// until waits until the chat has written a text after an offset, and returns the offset after it.
// With a key, it presses the key every 100 ms.
func (s *chat) until(text string, after int, key string) int {
	s.w.t.Helper()
	for {
		s.mu.Lock()
		changed, written := s.changed, s.written
		s.mu.Unlock()
		if at := strings.Index(written[after:], text); at >= 0 {
			return after + at + len(text)
		}
		var again <-chan time.Time
		if key != "" {
			s.press(key)
			again = time.After(100 * time.Millisecond)
		}
		select {
		case <-changed:
		case <-again:
		case <-s.w.ctx.Done():
			require.FailNow(s.w.t, "the chat did not write "+text)
		}
	}
}

func (s *chat) press(keys string) {
	s.w.t.Helper()
	_, err := s.terminal.WriteString(keys)
	require.NoError(s.w.t, err)
}

// A prompt ignores keys for a moment, so that text that is being typed makes no decision. Then it
// explains a key without a meaning.
func TestCallsAreApprovedDeniedAndEditedInTheChat(t *testing.T) {
	t.Parallel()
	const explained = "y approves, n denies"
	p := newProbe(t, echoed)
	second, third := llmtest.NewGate(), llmtest.NewGate() // of the next prompt
	w := newWorld(t, llmtest.Calls(p.call("probe", "a")), llmtest.Calls(p.call("probe", "b")).HoldAfter(0, second),
		llmtest.Calls(p.call("probe", "c")).HoldAfter(0, third), llmtest.Answer("Done."))
	w.worker()
	c := w.open("chat")
	w.requireApproval(c, time.Hour)
	s := w.chat(c, "ann")
	at := s.until("›", 0, "")
	s.press("Look\r")
	ready := func() {
		at = s.until("approve probe?", at, "")
		at = s.until(explained, at, "x")
	}
	ready()
	require.Empty(t, p.seen())
	s.press("y")
	at = s.until("approved probe by ann", at, "")

	second.Open()
	ready()
	s.press("n")
	at = s.until("reason, or Enter for none", at, "")
	s.press("Too much\r")
	at = s.until("denied probe by ann: Too much", at, "")

	third.Open()
	ready()
	s.press("e")
	at = s.until("with these arguments: Enter", at, "")
	s.press("\x15") // Ctrl-U empties the line
	edited := fmt.Sprintf(`{"q":"edited","url":%q}`, p.url)
	s.press(edited + "\r")
	s.until("Done.", at, "")
	w.await(c, isTag(event.TagLLMRequestCompleted))
	s.press("\x04")
	w.wait(s.done)

	requests := w.model.Requests()
	require.Equal(t, []string{"result of a"}, requests[1].Results())
	require.Equal(t, []string{"denied: Too much"}, requests[2].Results())
	require.Equal(t, []string{"result of edited"}, requests[3].Results())
	require.Equal(t, []probeCall{{"call_a", "a"}, {"call_c", "edited"}}, p.seen())
	require.Equal(t, []event.ApprovalDecided{
		{ToolCallID: "call_a", Decision: event.Approve, DecidedBy: "ann"},
		{ToolCallID: "call_b", Decision: event.Deny, Reason: "Too much", DecidedBy: "ann"},
		{ToolCallID: "call_c", Decision: event.Approve, Parameters: json.RawMessage(edited), DecidedBy: "ann"},
	}, bodiesOf[event.ApprovalDecided](w, c))
	w.replay(c, "")
}

// The chat does not control its terminal, so no signal tells it that the terminal is gone.
func TestAChatEndsWithItsTerminal(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	w := newWorld(t, llmtest.Answer("One", ", two.").HoldAfter(1, gate))
	w.worker()
	c := w.open("chat-gone")
	s := w.chat(c, "ann")
	s.until("›", 0, "")
	s.press("Count\r")
	require.NoError(t, gate.Reached(w.ctx))
	require.NoError(t, s.terminal.Close())
	w.wait(s.done)
	var exited *exec.ExitError
	require.ErrorAs(t, s.program.Err(), &exited)
	require.Equal(t, exit.Failure, exited.ExitCode())

	gate.Open()
	w.await(c, isTag(event.TagLLMRequestCompleted))
	require.Equal(t, "One, two.", w.await(c, isTag(event.TagAssistantMessage)).Body.(event.AssistantMessage).Content)
}
