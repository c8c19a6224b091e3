package e2e

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/session"
)

// line leads to Temporal until something is said on it. Then the server is heard
// no more, and what was said gets to it or not. When the line is cut it takes
// nobody, until it is mended.
type line struct {
	listener net.Listener
	to       string
	text     []byte
	arrives  bool // what was said gets to the server
	// said gets a value each time that the text is on the line. missed is closed
	// when somebody was turned away since it was cut.
	said, missed chan struct{}

	mu      sync.Mutex
	state   lineState
	missing sync.Once
	ends    map[net.Conn]struct{}
}

type lineState int

const (
	lineWhole lineState = iota
	lineUnheard
	lineCut
	lineMended
)

// newLine opens a line to the server at an address, until the end of the test.
func newLine(t *testing.T, to, text string, arrives bool) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{
		listener: listener, to: to, text: []byte(text), arrives: arrives,
		said: make(chan struct{}, 8), missed: make(chan struct{}), ends: map[net.Conn]struct{}{},
	}
	t.Cleanup(func() {
		_ = listener.Close()
		l.hangUp(lineCut)
	})
	go l.serve()
	return l
}

func (l *line) address() string { return l.listener.Addr().String() }

// cut ends all connections.
func (l *line) cut() { l.hangUp(lineCut) }

// mend takes connections again.
func (l *line) mend() { l.hangUp(lineMended) }

func (l *line) hangUp(state lineState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
	for end := range l.ends {
		_ = end.Close()
	}
	clear(l.ends)
}

func (l *line) serve() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", l.to)
		if err != nil || !l.takes(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		go l.carry(out, in, l.listen())
		go l.carry(in, out, l.isHeard)
	}
}

// takes reports whether a connection with two ends is taken.
func (l *line) takes(in, out net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lineCut {
		l.missing.Do(func() { close(l.missed) })
		return false
	}
	l.ends[in], l.ends[out] = struct{}{}, struct{}{}
	return true
}

// carry carries what may pass, and ends the connection with either end.
func (l *line) carry(to, from net.Conn, passes func([]byte) bool) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if !passes(buffer[:n]) {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// listen returns a function that listens to one connection for the text.
func (l *line) listen() (passes func([]byte) bool) {
	var heard []byte // the text may come in two pieces
	return func(piece []byte) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		heard = append(heard, piece...)
		if l.state < lineCut && bytes.Contains(heard, l.text) {
			l.state = lineUnheard
			l.said <- struct{}{}
		}
		heard = heard[max(0, len(heard)-len(l.text)+1):]
		return l.state != lineUnheard || l.arrives
	}
}

func (l *line) isHeard([]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state != lineUnheard
}

func TestAMessageWhoseConnectionIsCutIsSentOnce(t *testing.T) {
	t.Parallel()
	_, err := built()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		arrives bool
		times   int // that it is said before the cut
	}{
		"before the server has it":                   {false, 1},
		"when it has it and has not answered":        {true, 1},
		"when it has it twice, by update and signal": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			const text = "say this once and no more"
			w := newWorldOn(t, surroundings{patience: building}, llmtest.Answer("Once."))
			w.worker()
			c := w.open("cut")
			w.send(c, note("before", "Nothing yet"))
			said := func(e event.Event) bool {
				m, ok := e.Body.(event.UserMessage)
				return ok && m.Content == text
			}

			line := newLine(t, w.on.temporal, text, test.arrives)
			far := *w // the same world at the other end of the line
			far.on.temporal = line.address()
			type outcome struct {
				out, complaint string
				err            error
			}
			done := make(chan outcome, 1)
			go func() {
				out, complaint, err := far.tryStarter("", "send", "-n", c.Name(), "-m", text, "--json")
				done <- outcome{out, complaint, err}
			}()
			for range test.times {
				w.wait(line.said)
			}
			if test.arrives {
				w.await(c, said)
			}
			line.cut()
			w.wait(line.missed)
			require.Equal(t, test.arrives, w.has(c, said))
			line.mend()

			got := <-done
			require.NoError(t, got.err, got.complaint)
			var recorded []string
			for e, err := range c.Events(w.ctx, "") {
				require.NoError(t, err)
				if said(e) {
					recorded = append(recorded, e.ID)
				}
			}
			require.Len(t, recorded, 1)
			require.Contains(t, got.out, `"id":"`+recorded[0]+`"`)
			require.Contains(t, got.out, `"_tag":"LLMRequestCompletedEvent"`)
			require.Len(t, w.model.Requests(), 1)
		})
	}
}

// has reports whether an event is in the log.
func (w *world) has(c *session.Context, found func(event.Event) bool) bool {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
		if found(e) {
			return true
		}
	}
	return false
}

// wait waits for what is sure to come.
func (w *world) wait(done <-chan struct{}) {
	w.t.Helper()
	select {
	case <-done:
	case <-w.ctx.Done():
		require.Fail(w.t, "what the test waits for did not come")
	}
}
