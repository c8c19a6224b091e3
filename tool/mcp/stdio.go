package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pipes is the transport over the standard input and output of a server.
type pipes struct {
	wire   *wire
	input  io.WriteCloser
	output io.ReadCloser
	noise  *lineWriter // receives what is no message

	incoming chan jsonrpc.Message // closed at the end of the output
	closed   chan struct{}
	close    func()
	mu       sync.Mutex // guards writes to the input
}

// Connect implements [sdk.Transport].
func (p *pipes) Connect(context.Context) (sdk.Connection, error) {
	p.incoming, p.closed = make(chan jsonrpc.Message), make(chan struct{})
	p.close = sync.OnceFunc(func() {
		close(p.closed)
		p.input.Close()
		p.output.Close()
	})
	go p.scan()
	return p, nil
}

func (p *pipes) scan() {
	defer close(p.incoming)
	deliver := func(messages []jsonrpc.Message) {
		for _, m := range messages {
			select {
			case p.incoming <- m:
			case <-p.closed:
				return
			}
		}
	}
	var messages []jsonrpc.Message
	s := &scanner{
		message: func(object []byte) (isMessage bool) {
			messages, isMessage = p.wire.read(object, 0)
			return isMessage
		},
		deliver: func() { deliver(messages) },
		noise: func(text []byte) {
			if !isSeparator(text) {
				p.wire.quirk(quirkNoise)
				_, _ = p.noise.Write(append(bytes.TrimRight(text, "\r\n"), '\n'))
			}
		},
		tooLong: func() {
			deliver(p.wire.fail(0, fmt.Sprintf("a message of the server is longer than %d bytes", maxMessageBytes)))
		},
	}
	_, _ = io.Copy(s, p.output)
	s.end()
}

// Read implements [sdk.Connection].
func (p *pipes) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, ok := <-p.incoming:
		if ok {
			return m, nil
		}
	case <-p.closed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, io.EOF
}

// Write implements [sdk.Connection].
func (p *pipes) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	p.wire.write(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.input.Write(append(data, '\n'))
	if n > 0 {
		markSent(ctx)
	}
	return err
}

// Close implements [sdk.Connection].
func (p *pipes) Close() error {
	p.close()
	return nil
}

// SessionID implements [sdk.Connection].
func (p *pipes) SessionID() string { return "" }
