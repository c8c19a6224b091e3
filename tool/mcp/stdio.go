package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/internal/lines"
)

// pipes is the transport over the standard input and output of a server. Each line is a message or noise.
type pipes struct {
	wire   *wire
	input  io.WriteCloser
	output io.ReadCloser
	noise  *lineWriter // receives lines that are no messages

	lines  *lines.Reader
	failed []jsonrpc.Message // to be read
	mu     sync.Mutex        // guards writes to the input
}

// Connect implements [sdk.Transport].
func (p *pipes) Connect(context.Context) (sdk.Connection, error) {
	p.lines = lines.NewCutting(p.output, maxMessageBytes)
	return p, nil
}

// Read implements [sdk.Connection]. It returns when the output is closed.
func (p *pipes) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(p.failed) > 0 {
			m := p.failed[0]
			p.failed = p.failed[1:]
			return m, nil
		}
		if !p.lines.Next() {
			return nil, io.EOF
		}
		if p.lines.Cut > 0 && isObject(p.lines.Text) {
			p.failed = p.wire.failAll(fmt.Sprintf("a message of the server is longer than %d bytes", maxMessageBytes))
			continue
		}
		m, noise := p.wire.read(p.lines.Text, 0)
		if noise = bytes.TrimSpace(noise); len(noise) > 0 {
			p.wire.quirk(quirkNoise)
			_, _ = p.noise.Write(slices.Concat(noise, []byte("\n")))
		}
		if m != nil {
			return m, nil
		}
	}
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
	p.input.Close()
	return p.output.Close()
}

// SessionID implements [sdk.Connection].
func (p *pipes) SessionID() string { return "" }
