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

// lossyProxy forwards connections to Temporal until a client sends a given text. From then
// on it drops responses, and forwards or drops requests. After cut it refuses connections
// until mend.
type lossyProxy struct {
	listener net.Listener
	to       string
	text     []byte
	arrives  bool // whether the text is forwarded
	// said receives a value each time the text is sent. missed is closed when a
	// connection was refused after cut.
	said, missed chan struct{}

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
	proxyMended
)

func newLossyProxy(t *testing.T, to, text string, arrives bool) *lossyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &lossyProxy{
		listener: listener, to: to, text: []byte(text), arrives: arrives,
		said: make(chan struct{}, 8), missed: make(chan struct{}), ends: map[net.Conn]struct{}{},
	}
	t.Cleanup(func() {
		_ = listener.Close()
		p.closeAll(proxyCut)
	})
	go p.serve()
	return p
}

func (p *lossyProxy) address() string { return p.listener.Addr().String() }

// cut closes all connections and refuses new ones.
func (p *lossyProxy) cut() { p.closeAll(proxyCut) }

// mend accepts and forwards connections again.
func (p *lossyProxy) mend() { p.closeAll(proxyMended) }

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
		out, err := net.Dial("tcp", p.to)
		if err != nil || !p.register(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		go p.forward(out, in, p.listen())
		go p.forward(in, out, p.passesResponse)
	}
}

func (p *lossyProxy) register(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == proxyCut {
		p.once.Do(func() { close(p.missed) })
		return false
	}
	p.ends[in], p.ends[out] = struct{}{}, struct{}{}
	return true
}

// forward copies data that passes, and closes the connection when either end closes.
func (p *lossyProxy) forward(to, from net.Conn, passes func([]byte) bool) {
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

// listen returns a function that searches one connection for the text.
func (p *lossyProxy) listen() (passes func([]byte) bool) {
	var sent []byte // the text may span two reads
	return func(piece []byte) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		sent = append(sent, piece...)
		if p.state < proxyCut && bytes.Contains(sent, p.text) {
			p.state = proxyDrops
			p.said <- struct{}{}
		}
		sent = sent[max(0, len(sent)-len(p.text)+1):]
		return p.state != proxyDrops || p.arrives
	}
}

func (p *lossyProxy) passesResponse([]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state != proxyDrops
}

func TestAMessageIsRecordedOnceAfterAConnectionLoss(t *testing.T) {
	t.Parallel()
	_, err := built()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		arrives bool
		times   int // how often the client sends before the cut
	}{
		"before the server receives it":               {false, 1},
		"after the server received it":                {true, 1},
		"after the server received update and signal": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			const text = "say this once and no more"
			w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Answer("Once."))
			w.worker()
			c := w.open("cut")
			w.send(c, note("before", "Nothing yet"))
			said := func(e event.Event) bool {
				m, ok := e.Body.(event.UserMessage)
				return ok && m.Content == text
			}

			proxy := newLossyProxy(t, w.on.temporal, text, test.arrives)
			far := *w // the same world behind the proxy
			far.on.temporal = proxy.address()
			type outcome struct {
				out, errOut string
				err         error
			}
			done := make(chan outcome, 1)
			go func() {
				out, errOut, err := far.tryStarter("", "send", "-n", c.Name(), "-m", text, "--json")
				done <- outcome{out, errOut, err}
			}()
			for range test.times {
				w.wait(proxy.said)
			}
			if test.arrives {
				w.await(c, said)
			}
			proxy.cut()
			w.wait(proxy.missed)
			require.Equal(t, test.arrives, w.has(c, said))
			proxy.mend()

			got := <-done
			require.NoError(t, got.err, got.errOut)
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

func (w *world) has(c *client.Context, found func(event.Event) bool) bool {
	w.t.Helper()
	for e, err := range c.Events(w.ctx, "") {
		require.NoError(w.t, err)
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
