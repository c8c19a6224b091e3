package title_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/title"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// fixture is a worker without the hook, which the tests call themselves.
type fixture struct {
	*client.Client
	t    *testing.T
	hook hook.Hook
	log  bytes.Buffer

	mu     sync.Mutex
	steps  []llmtest.Step    // of the model that writes titles
	titles []llmtest.Request // that it received
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	server := chronicletest.Start(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		if r.Model != "titles" {
			return llmtest.Answer("It does, ", "in the mine.")
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.titles = append(f.titles, r)
		if len(f.steps) == 0 {
			return llmtest.Error(400, "unexpected", "unexpected request for a title")
		}
		step := f.steps[0]
		f.steps = f.steps[1:]
		return step
	}))
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	models := llm.New(llm.Options{Defaults: server.Defaults()})
	worker, err := conn.NewWorker(contexts.Options{Models: models})
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	f.Client = conn.Client()
	f.hook = title.New(title.Options{
		Client: f.Client, Models: models, ProviderID: "scripted", Model: "titles", Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	require.NoError(t, hook.Validate([]hook.Hook{f.hook}))
	return f
}

func (f *fixture) answers(steps ...llmtest.Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps, f.titles = steps, nil
}

func (f *fixture) requests() []llmtest.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.titles
}

func (f *fixture) open(name string) *client.Context {
	f.t.Helper()
	of, err := f.Open(name)
	require.NoError(f.t, err)
	return of
}

func (f *fixture) send(name string, body event.Body) {
	f.t.Helper()
	_, err := f.open(name).Send(f.t.Context(), event.New(body))
	require.NoError(f.t, err)
}

func (f *fixture) ask(name, text string) {
	f.t.Helper()
	_, err := f.open(name).Answer(f.t.Context(), event.New(event.UserMessage{Content: text}))
	require.NoError(f.t, err)
}

func (f *fixture) events(name string) (events []event.Event) {
	f.t.Helper()
	for e, err := range f.Events(f.t.Context(), name, "") {
		require.NoError(f.t, err)
		events = append(events, e)
	}
	return events
}

// deliver delivers the newest events of a context that has n.
func (f *fixture) deliver(name string, from int) error {
	f.t.Helper()
	return f.hook.OnEvent(f.t.Context(), hook.Events{ContextName: name, Events: f.events(name)[from:]})
}

// titled returns the titles that events set.
func (f *fixture) titled(name string) (titles []string) {
	f.t.Helper()
	for _, e := range f.events(name) {
		if body, ok := e.Body.(event.SetDetails); ok && body.Title != nil {
			titles = append(titles, *body.Title)
		}
	}
	return titles
}

func (f *fixture) close(name string) {
	f.t.Helper()
	require.NoError(f.t, f.open(name).Close(f.t.Context(), ""))
	require.Eventually(f.t, func() bool {
		s, err := f.Summary(f.t.Context(), name)
		return err == nil && !s.ClosedAt.IsZero()
	}, time.Minute, 10*time.Millisecond)
}

func TestTitles(t *testing.T) {
	f := start(t)

	t.Run("a context gets one after its first answer, once", func(t *testing.T) {
		f.answers(llmtest.Answer("# \"The canary", " in the mine\"\n\nEnjoy!").Offered())
		f.ask("demo", "Does the canary sing? "+strings.Repeat("la ", 10_000))
		require.NoError(t, f.deliver("demo", 0))
		require.Equal(t, []string{"The canary in the mine"}, f.titled("demo"))
		request := f.requests()[0]
		require.Len(t, request.Messages, 2)
		require.True(t, strings.HasPrefix(request.LastUser(), "User: Does the canary sing? la la"))
		require.Contains(t, request.LastUser(), " …\n\nAssistant: It does, in the mine.")
		require.Less(t, len(request.LastUser()), 3000)
		require.Contains(t, f.log.String(), "context=demo outcome=completed provider=scripted model=titles input_tokens=7 output_tokens=2")

		require.NoError(t, f.deliver("demo", 0), "again")
		f.ask("demo", "And the sparrow?")
		require.NoError(t, f.deliver("demo", 0))
		require.Len(t, f.requests(), 1)
		require.Len(t, f.titled("demo"), 1)
	})

	t.Run("a fork has that of its origin", func(t *testing.T) {
		events := f.events("demo")
		require.NoError(t, f.open("demo").Fork(t.Context(), events[len(events)-1].ID, "fork"))
		f.answers()
		f.ask("fork", "And the mine?")
		require.NoError(t, f.deliver("fork", len(events)))
		require.Empty(t, f.requests())
	})

	t.Run("a context that was answered before gets none", func(t *testing.T) {
		f.answers()
		f.ask("earlier", "Hello")
		n := len(f.events("earlier"))
		f.ask("earlier", "Hello again")
		require.NoError(t, f.deliver("earlier", n))
		require.Empty(t, f.requests())
	})

	t.Run("one that a person set or removed stays", func(t *testing.T) {
		f.answers()
		for _, of := range []string{"A plan", ""} {
			name := "set" + strings.TrimPrefix(of, "A ")
			f.send(name, event.SetDetails{Title: &of})
			f.ask(name, "Hello")
			require.NoError(t, f.deliver(name, 0))
			require.Equal(t, []string{of}, f.titled(name))
		}
		require.Empty(t, f.requests())
	})

	t.Run("one that a person sets while the model writes stays", func(t *testing.T) {
		gate := llmtest.NewGate()
		f.answers(llmtest.Answer("A canary").HoldAfter(0, gate))
		f.ask("busy", "Hello")
		delivered := make(chan error)
		go func() { delivered <- f.deliver("busy", 0) }()
		require.NoError(t, gate.Reached(t.Context()))
		f.send("busy", event.SetDetails{Title: new("A plan")})
		gate.Open()
		require.NoError(t, <-delivered)
		require.Equal(t, []string{"A plan"}, f.titled("busy"))
	})

	t.Run("two deliveries at once add one", func(t *testing.T) {
		gates := []*llmtest.Gate{llmtest.NewGate(), llmtest.NewGate()}
		f.answers(llmtest.Answer("A canary").HoldAfter(0, gates[0]), llmtest.Answer("The canary").HoldAfter(0, gates[1]))
		f.ask("twice", "Hello")
		delivered := make(chan error)
		for range gates {
			go func() { delivered <- f.deliver("twice", 0) }()
		}
		for _, gate := range gates {
			require.NoError(t, gate.Reached(t.Context()))
		}
		for _, gate := range gates {
			gate.Open()
		}
		require.NoError(t, errors.Join(<-delivered, <-delivered))
		require.Len(t, f.titled("twice"), 1)
	})

	t.Run("archived, closed and deleted contexts get none, and stay as they are", func(t *testing.T) {
		f.answers()
		f.ask("archived", "Hello")
		f.send("archived", event.SetDetails{Archived: new(true)})
		f.ask("closed", "Hello")
		f.close("closed")
		for _, name := range []string{"archived", "closed"} {
			require.NoError(t, f.deliver(name, 0))
			require.Empty(t, f.titled(name))
		}
		require.NoError(t, f.hook.OnEvent(t.Context(), hook.Events{ContextName: "deleted", Events: f.events("closed")}))
		_, err := f.Summary(t.Context(), "deleted")
		require.ErrorIs(t, err, client.ErrNoContext)
		require.Empty(t, f.requests())
	})

	t.Run("a context that closes while the model writes is not opened again", func(t *testing.T) {
		gate := llmtest.NewGate()
		f.answers(llmtest.Answer("A canary").HoldAfter(0, gate))
		f.ask("closing", "Hello")
		delivered := make(chan error)
		go func() { delivered <- f.deliver("closing", 0) }()
		require.NoError(t, gate.Reached(t.Context()))
		f.close("closing")
		before, err := f.Summary(t.Context(), "closing")
		require.NoError(t, err)
		gate.Open()
		require.NoError(t, <-delivered)
		after, err := f.Summary(t.Context(), "closing")
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.Empty(t, f.titled("closing"))
	})

	t.Run("a failure that may pass is one of the delivery", func(t *testing.T) {
		f.ask("failing", "Hello")
		f.answers(llmtest.Error(503, "overloaded", "later"))
		require.ErrorContains(t, f.deliver("failing", 0), "server error")
		f.answers(llmtest.Error(429, "rate_limit_exceeded", "slow down").RetryAfter("7"))
		var later *hook.RetryAfterError
		require.ErrorAs(t, f.deliver("failing", 0), &later)
		require.Equal(t, 7*time.Second, later.Delay)
		f.answers(llmtest.Error(401, "invalid_api_key", "no"))
		require.NoError(t, f.deliver("failing", 0))
		require.Contains(t, f.log.String(), `msg="a context stays without a title" context=failing`)
		require.Empty(t, f.titled("failing"))
		require.Equal(t, hook.Open, f.hook.OnFailure)
		require.LessOrEqual(t, f.hook.SkipAfter, 5*time.Minute)
	})
}

func TestATitleIsOneShortLineOfText(t *testing.T) {
	require.LessOrEqual(t, len(title.Clean(strings.Repeat("日本𝕏", 100))), event.MaxTitleBytes)
	for answer, want := range map[string]string{
		"":                            "",
		" \n\t":                       "",
		"A plan":                      "A plan",
		"\n\n  A   plan.  \nSecond":   "A plan",
		"**Title: A plan**":           "A plan",
		"Title: “A plan”":             "A plan",
		"# Intro to C#":               "Intro to C#",
		"A\u202eplan\x1b[0m\u2028two": "Aplan[0m",
		"A \xff plan":                 "A plan",
		"The key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789": "The key " + event.Removed,
		strings.Repeat("canary ", 20):                          "canary canary canary canary canary canary canary canary…",
		strings.Repeat("x", 61):                                strings.Repeat("x", 59) + "…",
	} {
		require.Equal(t, want, title.Clean(answer), "%q", answer)
		if want != "" {
			require.NoError(t, event.New(event.SetDetails{Title: &want}).ValidateInput())
		}
	}
}
