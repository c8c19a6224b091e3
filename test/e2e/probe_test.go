package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// probes are the tools of all workers: probe and probe_again, which is idempotent. Both send the
// call to the URL in their arguments and return the response.
type probes struct{}

var probeParameters = event.Object(`{"type":"object","properties":{"url":{"type":"string"},"q":{"type":"string"}},"required":["url"],"additionalProperties":false}`)

func (probes) Offer(_ context.Context, r activities.OfferRequest) (tools []activities.Tool, err error) {
	for _, tool := range []activities.Tool{{}, {Idempotent: true}} {
		tool.ToolDefinition = activities.ToolDefinition{Name: "probe", Description: "Ask a test", Parameters: probeParameters}
		if tool.Idempotent {
			tool.Name = "probe_again"
		}
		if slices.ContainsFunc(r.Config.Tools, func(t event.Tool) bool { return !t.IsClient() && event.MatchTool(t.Pattern, tool.Name) }) {
			tools = append(tools, tool)
		}
	}
	return tools, nil
}

func (probes) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	fail := func(err error) activities.ToolCallResult {
		text, _ := json.Marshal(err.Error())
		return activities.ToolCallResult{Error: text, IsError: true}
	}
	var in struct{ URL, Q string }
	if err := json.Unmarshal(r.Arguments, &in); err != nil {
		return fail(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, strings.NewReader(in.Q))
	if err != nil {
		return fail(err)
	}
	request.Header.Set("Idempotency-Key", r.ToolCallID)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fail(err)
	}
	value, _ := json.Marshal(string(body))
	return activities.ToolCallResult{Value: value}
}

// probe is the server that the probes call.
type probe struct {
	t      *testing.T
	url    string
	answer func(ctx context.Context, q string) string

	mu    sync.Mutex
	calls []probeCall
	new   chan struct{}
}

type probeCall struct{ id, q string }

// newProbe returns a server whose answers are computed from the argument q.
func newProbe(t *testing.T, answer func(ctx context.Context, q string) string) *probe {
	p := &probe{t: t, answer: answer, new: make(chan struct{}, 1000)}
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller was killed
		}
		p.mu.Lock()
		p.calls = append(p.calls, probeCall{r.Header.Get("Idempotency-Key"), string(q)})
		p.mu.Unlock()
		p.new <- struct{}{}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
		_, _ = fmt.Fprint(w, answer(ctx, string(q)))
	}))
	t.Cleanup(func() {
		close(done)
		s.Close()
	})
	p.url = s.URL
	return p
}

// awaitCall waits until a further call has arrived.
func (p *probe) awaitCall(ctx context.Context) {
	p.t.Helper()
	select {
	case <-p.new:
	case <-ctx.Done():
		p.t.Fatal("the tool was not called")
	}
}

func (p *probe) seen() []probeCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// call is a call of a probe with the argument q.
func (p *probe) call(tool, q string) llmtest.Call {
	arguments, err := json.Marshal(map[string]string{"url": p.url, "q": q})
	require.NoError(p.t, err)
	return llmtest.Call{ID: "call_" + q, Name: tool, Arguments: string(arguments)}
}

func echoed(_ context.Context, q string) string { return "result of " + q }

// held answers when the gate opens, and not if it is cancelled before.
func held(gate <-chan struct{}) func(context.Context, string) string {
	return func(ctx context.Context, q string) string {
		select {
		case <-gate:
			return "result of " + q
		case <-ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// setTools allows tools of the worker.
func (w *world) setTools(c *client.Context, patterns ...string) {
	w.t.Helper()
	var set event.SetTools
	for _, pattern := range patterns {
		set.Tools = append(set.Tools, event.Tool{Pattern: pattern})
	}
	w.send(c, event.New(set))
}

// signal sends an event as any Temporal client can.
func (w *world) signal(c *client.Context, input map[string]any) {
	w.t.Helper()
	require.NoError(w.t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, input))
}
