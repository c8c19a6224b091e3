package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

const (
	// exitWait bounds the wait for a process to exit after it closed its output, and for an output
	// or a session to end.
	exitWait = 2 * time.Second
	// maxBackoff bounds the delay between two starts. The delay doubles with each start, and returns
	// to the minimum when a server has run for maxBackoff.
	maxBackoff    = time.Minute
	maxErrorBytes = 2048 // in logs and for models
)

// statefulVersion is the newest protocol version whose sessions begin with the request "initialize".
// Older servers with a command may never answer the first request of newer versions.
const statefulVersion = "2025-11-25"

// timing contains delays and timeouts that tests change.
type timing struct {
	backoff time.Duration // minimum between two starts
	connect time.Duration // timeout of the start of a server, and of a list of its tools
	ping    time.Duration // timeout of a ping after a call timed out
	stop    time.Duration // for a process to exit after its input is closed, and again after SIGTERM
	wait    time.Duration // limit for a request that waits for the first start of a server, or a call that waits for a restart
}

var defaultTiming = timing{backoff: time.Second, connect: 30 * time.Second, ping: 10 * time.Second, stop: 2 * time.Second, wait: 10 * time.Second}

// server runs one MCP server: it starts the server, lists its tools, and restarts it when it ends.
type server struct {
	config Server
	dial   func(context.Context, *secrets) (*link, error) // method connection; tests replace it
	getenv func(string) string
	http   http.RoundTripper
	logger *slog.Logger
	timing timing
	report func(kind string) // of each deviation; see [Options]

	progress progressTable

	mu       sync.Mutex
	quirks   map[string]int // deviations by kind
	link     *link          // nil unless connected
	tools    []tool.Tool    // the newest list, with those that cannot be offered
	isListed bool           // tools were listed once
	failures int            // starts that failed
	next     time.Time      // when the next start is due; zero: now
	err      error          // why it is not connected
	changed  chan struct{}  // closed at the next change of the fields above
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) run(ctx context.Context) {
	delay := s.timing.backoff
	for {
		started := time.Now()
		wasConnected, err := s.serve(ctx)
		if ctx.Err() != nil {
			s.set(func() { s.link, s.err = nil, errStopping })
			return
		}
		if time.Since(started) >= maxBackoff {
			delay = s.timing.backoff
		}
		s.set(func() {
			s.link, s.err, s.next = nil, err, time.Now().Add(delay)
			if !wasConnected {
				s.failures++
			}
		})
		s.logger.Warn("MCP server failed", "server", s.config.Name, "error", err.Error(), "restart_in", delay.String())
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		s.set(func() { s.next = time.Time{} })
		delay = min(2*delay, maxBackoff)
	}
}

var errStopping = errors.New("the worker is stopping")

// serve starts the server and returns why it ended, without secrets.
func (s *server) serve(ctx context.Context) (wasConnected bool, err error) {
	l, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	defer l.close()
	if err := s.list(ctx, l); err != nil {
		return false, err
	}
	s.set(func() { s.link, s.err = l, nil })
	s.logger.Info("MCP server is connected", "server", s.config.Name, "tools", len(s.tools))
	for {
		select {
		case <-l.listChanged:
			if err := s.list(ctx, l); err != nil { // the previous list stays in use after an error
				s.logger.Warn("cannot read the changed tools of an MCP server", "server", s.config.Name, "error", err.Error())
			}
		case <-l.ended:
			return true, l.reason(errClosed)
		case <-l.lost:
			return true, l.reason(errClosed)
		case <-l.exited():
			// The rest of the output is read, unless a descendant keeps it open.
			l.process.signal(syscall.SIGKILL)
			waitFor(l.ended, exitWait)
			return true, l.process.exit()
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

func (s *server) connect(ctx context.Context) (*link, error) {
	if s.config.Command == "" {
		return s.connectAs(ctx, "")
	}
	l, err := s.connectAs(ctx, statefulVersion)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return s.connectAs(ctx, "") // a server without "initialize"
	}
	return l, err
}

// connectAs takes a protocol version; empty: the newest that both sides support.
func (s *server) connectAs(ctx context.Context, version string) (*link, error) {
	life, abort := context.WithCancel(context.Background())
	l, err := s.dial(life, &secrets{getenv: s.getenv})
	if err != nil {
		abort()
		return nil, err
	}
	l.abort = abort
	l.listChanged, l.ended, l.lost = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	l.lose = sync.OnceFunc(func() { close(l.lost) })
	client := sdk.NewClient(&sdk.Implementation{Name: "chronicle", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // no sampling, no elicitation, no roots
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.listChanged <- struct{}{}:
			default:
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			s.progress.report(r.Params, l.secrets.scrub)
		},
	})
	ctx, cancel := context.WithTimeout(ctx, s.timing.connect)
	defer cancel()
	type connected struct {
		session *sdk.ClientSession
		err     error
	}
	defer context.AfterFunc(ctx, abort)()
	done := make(chan connected, 1)
	go func() {
		session, err := client.Connect(ctx, l.transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		done <- connected{session, err}
	}()
	select {
	case c := <-done:
		if c.err != nil {
			err := l.reason(fmt.Errorf("initialize: %w", l.explain(ctx, c.err)))
			l.close()
			return nil, err
		}
		l.session = c.session
	case <-l.exited():
		err := l.process.exit()
		l.close()
		return nil, err
	}
	go func() {
		_ = l.session.Wait()
		close(l.ended)
	}()
	return l, nil
}

// offered returns the newest list of tools. It waits only for the first start of the server, so a
// server that cannot start delays only the first request.
func (s *server) offered(ctx context.Context) ([]tool.Tool, error) {
	err := s.await(ctx, s.timing.wait, func() bool { return s.isListed || s.failures > 0 })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isListed {
		return nil, s.err
	}
	return s.tools, nil
}

// connected waits until the server is connected, and returns the link. If failed is not nil, it is a link from an
// earlier call that no longer works, and connected waits for another one.
func (s *server) connected(ctx context.Context, failed *link) (*link, error) {
	var l *link
	err := s.await(ctx, s.timing.wait, func() bool {
		l = s.link
		return l != nil && l != failed
	})
	return l, err
}

// await waits until a condition holds. It fails when the next start fails, when no start is due
// within the time to wait, or after that time.
func (s *server) await(ctx context.Context, wait time.Duration, holds func() bool) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	failures := -1
	for {
		s.mu.Lock()
		done, changed, err, failed, due := holds(), s.changed, s.err, s.failures, time.Until(s.next)
		s.mu.Unlock()
		if failures < 0 {
			failures = failed
		}
		switch {
		case done:
			return nil
		case err != nil && (failed > failures || due > wait || errors.Is(err, errStopping)):
			return err
		}
		select {
		case <-changed:
		case <-timer.C:
			return fmt.Errorf("not connected within %v", wait)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// call returns errors for models.
func (s *server) call(ctx context.Context, name string, arguments json.RawMessage, progress func(string)) (any, error) {
	var failed *link
	for {
		l, err := s.connected(ctx, failed)
		if err != nil {
			return nil, retryable(&callError{server: s.config.Name, err: err, isUnsent: true})
		}
		value, err := s.callOn(ctx, l, name, arguments, progress)
		// The server has restarted, or is about to, and did not execute the call.
		if failed == nil && (errors.Is(err, sdk.ErrSessionMissing) || errors.As(err, &unsentError{})) {
			failed = l
			continue
		}
		return value, retryable(err)
	}
}

func (s *server) callOn(ctx context.Context, l *link, name string, arguments json.RawMessage, progress func(string)) (_ any, err error) {
	ctx, span := s.startSpan(ctx, name)
	defer func() { tracing.End(span, err) }()
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	setTraceContext(ctx, params)
	token, end := s.progress.begin(progress)
	defer end()
	params.SetProgressToken(token)
	sending, sent := withSent(ctx)
	result, err := l.session.CallTool(sending, params)
	switch {
	case err == nil:
		return s.valueOf(result, l.secrets)
	case errors.Is(err, sdk.ErrSessionMissing):
		return nil, sdk.ErrSessionMissing
	case ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && l.process != nil {
			go s.checkAlive(l)
		}
		return nil, ctx.Err()
	}
	isUnsent := !sent.Load() || errors.As(err, &unsentError{})
	err = l.explain(ctx, err)
	var rejected *jsonrpc.Error
	if errors.As(err, &rejected) {
		return nil, &callError{server: s.config.Name, err: errors.New(rejected.Message), isRejected: true}
	}
	if errors.Is(err, errClosed) {
		err = l.reason(err)
		s.set(func() { // later calls wait for the next start
			if s.link == l {
				s.link, s.err = nil, err
			}
		})
		l.lose()
		if isUnsent {
			return nil, &callError{server: s.config.Name, err: unsentError{err}, isUnsent: true}
		}
	}
	return nil, &callError{server: s.config.Name, err: err, isUnsent: isUnsent}
}

// unsentError is why the server did not execute a call.
type unsentError struct{ error }

// checkAlive stops a server that does not answer a ping after a call timed out; it is then
// restarted. While another call runs, the server may only be busy, so it is not stopped.
func (s *server) checkAlive(l *link) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timing.ping)
	defer cancel()
	if l.session.Ping(ctx, nil) != nil && s.progress.running() == 0 {
		s.logger.Warn("an MCP server does not respond", "server", s.config.Name)
		l.process.stop()
	}
}

// callError is the error of a call. Models read its text.
type callError struct {
	server               string
	err                  error
	isUnsent, isRejected bool // the server did not receive the call, or answered with an error
}

func (e *callError) Error() string {
	switch {
	case e.isUnsent:
		return fmt.Sprintf("MCP server %s is unavailable: %v (the call was not made)", e.server, e.err)
	case e.isRejected:
		return fmt.Sprintf("MCP server %s: %v", e.server, e.err)
	}
	return fmt.Sprintf("MCP server %s: %v (the outcome of the call is unknown)", e.server, e.err)
}

func (e *callError) Unwrap() error { return e.err }

func (s *server) connection(life context.Context, known *secrets) (*link, error) {
	if s.config.Command == "" {
		headers, err := known.headers(s.config.Headers)
		if err != nil {
			return nil, err
		}
		transport, err := httpTransport(life, s.config, headers, s.http, &wire{quirk: s.quirk}, s.timing)
		return &link{transport: transport, secrets: known}, err
	}
	env, err := known.environment(s.config.Env)
	if err != nil {
		return nil, err
	}
	started, err := startProcess(s.config, env, s.lineWriter("MCP server wrote to its standard error", known), s.timing.stop)
	if err != nil {
		return nil, err
	}
	return &link{transport: s.pipes(started.stdin, started.stdout, known), secrets: known, process: started}, nil
}

func (s *server) pipes(input io.WriteCloser, output io.ReadCloser, known *secrets) *pipes {
	return &pipes{wire: &wire{quirk: s.quirk}, input: input, output: output, noise: s.lineWriter("MCP server wrote text that is no message to its standard output", known)}
}

func (s *server) lineWriter(message string, known *secrets) *lineWriter {
	return newLineWriter(known.scrub, func(line string, dropped int) {
		attributes := []any{"server", s.config.Name, "line", line}
		if dropped > 0 {
			attributes = append(attributes, "dropped_lines", dropped)
		}
		s.logger.Info(message, attributes...)
	})
}
