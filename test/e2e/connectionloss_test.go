package e2e

import (
	"bytes"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// lossyProxy forwards connections to a server until a client sends text; "": always. It then drops
// responses, and requests unless forwarded is set. Between cut and restore it refuses
// connections.
type lossyProxy struct {
	listener  net.Listener
	to        string // guarded by mu
	text      []byte
	forwarded bool // whether requests with the text are forwarded
	// sent receives a value each time a client sends the text. refused is closed at the
	// first refused connection.
	sent, refused chan struct{}

	mu    sync.Mutex
	state proxyState
	once  sync.Once
	ends  map[net.Conn]struct{}
}

type proxyState int

const (
	proxyForwards proxyState = iota
	proxyDrops
	proxyCut
	proxyRestored
)

func newLossyProxy(t *testing.T, to, text string, forwarded bool) *lossyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &lossyProxy{
		listener: listener, to: to, text: []byte(text), forwarded: forwarded,
		sent: make(chan struct{}, 8), refused: make(chan struct{}), ends: map[net.Conn]struct{}{},
	}
	t.Cleanup(func() {
		_ = listener.Close()
		p.closeAll(proxyCut)
	})
	go p.serve()
	return p
}

func (p *lossyProxy) address() string { return p.listener.Addr().String() }

func (p *lossyProxy) cut() { p.closeAll(proxyCut) }

func (p *lossyProxy) restore() { p.closeAll(proxyRestored) }

// redirect restores the proxy with another server.
func (p *lossyProxy) redirect(to string) {
	p.mu.Lock()
	p.to = to
	p.mu.Unlock()
	p.restore()
}

func (p *lossyProxy) closeAll(state proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	for end := range p.ends {
		_ = end.Close()
	}
	clear(p.ends)
}

func (p *lossyProxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		to := p.to
		p.mu.Unlock()
		out, err := net.Dial("tcp", to)
		if err != nil || !p.register(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		go p.copy(out, in, p.requestFilter())
		go p.copy(in, out, p.forwardsResponse)
	}
}

func (p *lossyProxy) register(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == proxyCut {
		p.once.Do(func() { close(p.refused) })
		return false
	}
	p.ends[in], p.ends[out] = struct{}{}, struct{}{}
	return true
}

// copy copies the data for which passes is true until either end closes.
func (p *lossyProxy) copy(to, from net.Conn, passes func([]byte) bool) {
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

func (p *lossyProxy) requestFilter() (passes func([]byte) bool) {
	if len(p.text) == 0 {
		return func([]byte) bool { return true }
	}
	var tail []byte // the text may span two reads
	return func(piece []byte) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		tail = append(tail, piece...)
		if p.state < proxyCut && bytes.Contains(tail, p.text) {
			p.state = proxyDrops
			p.sent <- struct{}{}
		}
		tail = tail[max(0, len(tail)-len(p.text)+1):]
		return p.state != proxyDrops || p.forwarded
	}
}

func (p *lossyProxy) forwardsResponse([]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state != proxyDrops
}

func TestAMessageIsRecordedOnceAfterAConnectionLoss(t *testing.T) {
	t.Parallel()
	_, err := built()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		forwarded bool
		sends     int // requests with the text before the cut
	}{
		"before the server receives it":               {false, 1},
		"after the server received it":                {true, 1},
		"after the server received update and signal": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			const text = "record this message once"
			w := newWorld(t, llmtest.Answer("Once."))
			w.worker()
			c := w.open("cut")
			w.send(c, note("before", "Nothing yet"))
			hasText := func(e event.Event) bool {
				m, ok := e.Body.(event.UserMessage)
				return ok && m.Content == text
			}

			proxy := newLossyProxy(t, w.on.temporal, text, test.forwarded)
			proxied := *w // the same world behind the proxy
			proxied.on.temporal = proxy.address()
			type outcome struct {
				out, errOut string
				err         error
			}
			done := make(chan outcome, 1)
			go func() {
				out, errOut, err := proxied.tryStarter("", "send", "-n", c.Name(), "-m", text, "--json")
				done <- outcome{out, errOut, err}
			}()
			for range test.sends {
				w.wait(proxy.sent)
			}
			if test.forwarded {
				w.await(c, hasText)
			}
			proxy.cut()
			w.wait(proxy.refused)
			require.Equal(t, test.forwarded, w.has(c, hasText))
			proxy.restore()

			got := <-done
			require.NoError(t, got.err, got.errOut)
			var recorded []string
			for _, e := range w.from(c, "") {
				if hasText(e) {
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

func (w *world) has(c *client.Context, found func(event.Event) bool) bool {
	w.t.Helper()
	for _, e := range w.from(c, "") {
		if found(e) {
			return true
		}
	}
	return false
}

func (w *world) wait(done <-chan struct{}) {
	w.t.Helper()
	select {
	case <-done:
	case <-w.ctx.Done():
		require.Fail(w.t, "timeout waiting for a channel")
	}
}
