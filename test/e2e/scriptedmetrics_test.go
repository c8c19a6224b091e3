package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// measured runs a conversation in which everything happens that the metrics measure.
type measured struct {
	*world
	exported *telemetry.Telemetry
	gateway  *httptest.Server
	server   *gateway.Gateway
	values   map[string]map[float64]bool // of each metric, the sums over its series that look has seen
}

func newMeasured(t *testing.T) *measured {
	m := &measured{world: newWorld(t), exported: exportMetrics(t), values: map[string]map[float64]bool{}}
	m.on.meters = m.exported.Meters()
	m.archive.Store().Measure(m.exported.Meters())
	m.temporal = m.dial(m.archive.Store(), func(o *sdkclient.Options) { o.MetricsHandler = m.exported.TemporalMetrics() })
	m.server = gateway.New(m.client, gateway.Options{Meters: m.exported.Meters()})
	m.gateway = httptest.NewUnstartedServer(m.server)
	m.gateway.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateNew {
			_ = conn.(*net.TCPConn).SetWriteBuffer(smallBuffer) // otherwise the kernel buffers megabytes
		}
	}
	m.gateway.Start()
	t.Cleanup(func() {
		m.server.Close()
		m.gateway.CloseClientConnections()
		m.gateway.Close()
	})
	return m
}

const smallBuffer = 128 << 10 // bytes

// look records the values of all metrics.
func (m *measured) look() {
	m.t.Helper()
	sums := map[string]float64{}
	for line := range strings.Lines(scrape(m.t, m.exported)) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || end < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		require.NoError(m.t, err, line)
		name, _, _ := strings.Cut(line[:end], "{")
		sums[name] += value
	}
	isFirst := len(m.values) == 0
	for name, sum := range sums {
		if m.values[name] == nil {
			m.values[name] = map[float64]bool{}
			if !isFirst {
				m.values[name][0] = true // it was absent before
			}
		}
		m.values[name][sum] = true
	}
}

func (m *measured) measure(o *contexts.Options) {
	base := baseurl.MustParse(m.model.URL)
	price := &llm.Price{Input: 2, CachedInput: 1, Output: 8}
	o.Models = llm.New(llm.Options{
		Getenv:    func(string) string { return "" },
		Defaults:  llm.Defaults{ProviderID: "openai", BaseURL: m.model.URL, Model: "scripted"},
		Providers: []llm.Provider{{ID: "openai", BaseURL: base, Price: price}, {ID: "spare", BaseURL: base, Price: price}},
	})
	o.ContinueAfter = shortRun
	o.Hooks = []hook.Hook{{Name: "guard", Before: func(context.Context, hook.Request) (hook.Verdict, error) { return hook.Verdict{}, nil }}}
}

// apart answers in two workers, so that Generate queries the session.
func (m *measured) apart() {
	stops := []func(){
		m.worker(m.measure, func(o *contexts.Options) { o.Part = contexts.OnlyWorkflows }),
		m.worker(m.measure, func(o *contexts.Options) { o.Part = contexts.OnlyActivities }),
	}
	m.model.Then(llmtest.Answer("Hello", " there"))
	m.say(m.open("apart"), "Hi")
	for _, stop := range stops {
		stop()
	}
}

// recover lets a measured worker answer after another worker was killed.
func (m *measured) recover() {
	victim := m.process(contexts.Both)
	m.model.Then(llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()), llmtest.Answer("Recovered."))
	c := m.open("killed")
	turn := m.ask(c, "Hello")
	turn.underWay()
	m.awaitHeartbeat(c, func(l activities.Heartbeat) bool { return l.OutputTokens > 0 })
	victim.kill()
	m.worker(m.measure)
	require.Equal(m.t, event.TagLLMRequestCompleted, turn.rest().Tag())
}

func (m *measured) fail(c *client.Context) {
	down := llmtest.Error(500, "server_error", "down")
	m.model.Then(down, down, llmtest.Answer("Here", " I am.").Usage(12, 3).Cached(4))
	m.say(c, "Are you there?", event.New(event.SetRetryConfig{MaxRetries: 1, InitialDelayMs: 1}),
		event.New(event.SetProviderConfig{ProviderID: "spare", Model: "other", AsFallback: true}))
}

func (m *measured) interrupt(c *client.Context) {
	m.model.Then(llmtest.Answer("One", " two").HoldAfter(1, llmtest.NewGate()))
	turn := m.ask(c, "Count")
	turn.underWay()
	m.look()
	require.NoError(m.t, c.Interrupt(m.ctx))
	turn.rest()
}

func (m *measured) callTools(c *client.Context) {
	p := newProbe(m.t, echoed)
	m.model.Then(llmtest.Calls(p.call("probe", "a")), llmtest.Answer("Done."))
	m.requireApproval(c, time.Hour)
	turn := m.ask(c, "Look")
	turn.until(isTag(event.TagApprovalRequested))
	m.awaitMetric("chronicle_approvals_waiting 1")
	m.look()
	m.send(c, event.New(event.ApprovalDecided{ToolCallID: "call_a", Decision: event.Approve}))
	turn.rest()
	m.awaitMetric("chronicle_approvals_waiting 0")
}

func (m *measured) awaitMetric(line string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool { return strings.Contains(scrape(m.t, m.exported), line+"\n") }, testTimeout, 20*time.Millisecond, line)
}

func (m *measured) overflow(c *client.Context) {
	m.model.Then(llmtest.Answer("One."), llmtest.Answer("Two."), rejection, llmtest.Answer("A summary."), llmtest.Answer("Three."))
	for i := range 3 {
		m.say(c, fmt.Sprint(i, " ", longText))
	}
}

func (m *measured) exceedBudget(c *client.Context) {
	said := m.say(c, "More?", event.New(event.BudgetSet{Tokens: new(int64(1))}))
	require.Equal(m.t, event.TagLLMRequestFailed, said[len(said)-1].Tag())
}

// watch follows a long answer with a viewer that reads nothing until its end.
func (m *measured) watch(c *client.Context) {
	m.model.Then(llmtest.Answer("Yes?"))
	m.say(c, "Hello") // a gateway looks for new contexts only now and then
	dialer := net.Dialer{}
	conn, err := dialer.DialContext(m.ctx, "tcp", m.gateway.Listener.Addr().String())
	require.NoError(m.t, err)
	defer conn.Close()
	require.NoError(m.t, conn.(*net.TCPConn).SetReadBuffer(smallBuffer))
	_, err = fmt.Fprintf(conn, "GET /contexts/%s/transcript HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", c.Name())
	require.NoError(m.t, err)
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, smallBuffer), nil)
	require.NoError(m.t, err)
	m.look()

	pieces := make([]string, 100)
	for i := range pieces {
		pieces[i] = strings.Repeat("x", smallBuffer/4)
	}
	m.model.Then(llmtest.Answer(pieces...))
	m.say(c, "Write a book")
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, response.Body) })
	require.Eventually(m.t, func() bool { return strings.Contains(scrape(m.t, m.exported), "\nchronicle_deltas_coalesced_total ") },
		testTimeout, 20*time.Millisecond, "the viewer missed no deltas")
	_ = conn.Close()
	reading.Wait()
}

// deviate answers with a number instead of a text.
func (m *measured) deviate(c *client.Context) {
	m.model.Then(llmtest.Raw("text/event-stream", llmtest.Chunk(`{"content":7}`, "stop"), llmtest.Done))
	m.say(c, "How many?")
}

// talk lets runs continue as new.
func (m *measured) talk(c *client.Context) {
	for range 12 {
		m.model.Then(llmtest.Answer("Well."))
		m.say(c, "And?")
	}
}

func TestDashboardAndAlertsUseMetricsThatMove_Alone(t *testing.T) {
	needsTimelyHeartbeats(t)
	queries := readQueries(t)
	m := newMeasured(t)
	m.look()
	_, err := m.temporal.QueryWorkflow(m.ctx, wire.WorkflowID("missing"), "", wire.QueryState)
	require.Error(t, err, "a request that fails")
	m.apart()
	m.recover()
	c := m.open("measured")
	m.fail(c)
	m.deviate(c)
	m.interrupt(c)
	m.callTools(c)
	m.talk(c)
	m.overflow(m.open("too-long"))
	m.watch(m.open("watched"))
	m.exceedBudget(c)
	m.look()
	for where, expr := range queries {
		for _, name := range metricsIn(expr) {
			if assert.Contains(t, m.values, name, "%s: the metric is not exported", where) {
				assert.Greater(t, len(m.values[name]), 1, "%s: %s does not move", where, name)
			}
		}
	}
}
