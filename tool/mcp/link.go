package mcp

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// link is a connection to a server.
type link struct {
	transport   sdk.Transport
	secrets     *secrets
	process     *process // nil without a command
	session     *sdk.ClientSession
	listChanged chan struct{} // receives when the server announces a new list of tools
	ended       chan struct{} // closed when the session has ended
	lost        chan struct{} // closed by lose, when a call found that the connection is closed
	lose        func()
	abort       context.CancelFunc // ends all HTTP requests
}

// exited is closed when the process has exited; nil without one.
func (l *link) exited() <-chan struct{} {
	if l.process == nil {
		return nil
	}
	return l.process.done()
}

func (l *link) reason(err error) error {
	if l.process != nil && errors.Is(err, errClosed) && waitFor(l.exited(), exitWait) {
		return l.process.exit()
	}
	return err
}

func (l *link) close() {
	if l.process != nil {
		l.process.stop()
	}
	defer l.abort()
	if l.session == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = l.session.Close()
	}()
	waitFor(closed, exitWait) // Close waits for the server to answer
}

func waitFor(done <-chan struct{}, timeout time.Duration) (isDone bool) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// explain returns an error of the SDK without URLs, secrets and control characters.
func (l *link) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var answer *jsonrpc.Error
	if errors.As(err, &answer) && answer.Code != codeTransport {
		return &jsonrpc.Error{Code: answer.Code, Message: l.text(answer.Message)}
	}
	if errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return errClosed
	}
	var urlErr *url.Error
	for errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	return errors.New(l.text(err.Error()))
}

const codeTransport = -32005 // of errors of the SDK itself, which wrap the reason

var errClosed = errors.New("the connection was closed")

// text sanitizes untrusted text for errors.
func (l *link) text(text string) string {
	return event.RedactOutput(cleanLine(l.secrets.scrub(text)), maxErrorBytes)
}
