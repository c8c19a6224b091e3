package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func TestBudget(t *testing.T) {
	t.Run("set both limits", func(t *testing.T) {
		f := newFake(t, nil)
		got := starter(t, f, "", "budget", "-n", "demo", "--tokens", "5000", "--cost", "0.25")
		require.Equal(t, 0, got.code, got.errOut)
		require.Contains(t, got.out, "set budget: at most 5000 tokens, at most $0.25\n")
		require.Equal(t, event.BudgetSet{Tokens: new(int64(5000)), CostMicros: new(int64(250_000))}, f.inputs[0][0].Body)
	})
	t.Run("remove it", func(t *testing.T) {
		f := newFake(t, nil)
		got := starter(t, f, "", "budget", "-n", "demo", "--none")
		require.Equal(t, 0, got.code, got.errOut)
		require.Equal(t, event.BudgetSet{}, f.inputs[0][0].Body)
	})
	t.Run("show none", func(t *testing.T) {
		f := newFake(t)
		f.recordBodies(event.Note{Kind: event.NoteSystem})
		require.Equal(t, outcome{0, "", "context demo has no budget\n"}, starter(t, f, "", "budget", "-n", "demo"))
	})
	t.Run("show the usage", func(t *testing.T) {
		f := newFake(t)
		f.recordBodies(event.BudgetSet{Tokens: new(int64(5000))}, event.UserMessage{Content: "Hello"},
			event.LLMRequestStarted{RequestID: "demo:r0001", Attempt: 1, ThroughEventID: "demo:0002"},
			event.LLMRequestCompleted{RequestID: "demo:r0001", Usage: event.Usage{InputTokens: 40, OutputTokens: 2}})
		require.Equal(t, outcome{0, "demo: 42 of 5000 tokens\n", ""}, starter(t, f, "", "budget", "-n", "demo"))
		require.Equal(t, outcome{0, `{"contextName":"demo","budget":{"tokens":5000},"used":{"tokens":42}}` + "\n", ""},
			starter(t, f, "", "budget", "-n", "demo", "--json"))
		require.Contains(t, starter(t, f, "", "state", "-n", "demo").out, "budget    42 of 5000 tokens\n")
	})
	t.Run("show that of a label", func(t *testing.T) {
		c := &fakeClient{budgets: map[string]wire.BudgetState{"team=support": {
			Day: "2026-01-02", Limit: event.Budget{Tokens: new(int64(5000)), CostMicros: new(int64(2_500_000))},
			Spent: event.Amount{Tokens: 1500, CostMicros: 20_000}, Reserved: event.Amount{Tokens: 100, CostMicros: 500},
		}}}
		got := starterWith(t, t.Context(), c, strings.NewReader(""), "budget", "--label", "team=support")
		require.Equal(t, outcome{0, "team=support on 2026-01-02: 1500 of 5000 tokens, $0.02 of $2.50; reserved: 100 tokens, $0.0005\n", ""}, got)
	})
	t.Run("show that of a label of a tenant", func(t *testing.T) {
		c := &fakeClient{budgets: map[string]wire.BudgetState{"acme/team=support": {Day: "2026-01-02", Spent: event.Amount{Tokens: 15}}}}
		got := starterWith(t, t.Context(), c, strings.NewReader(""), "budget", "--label", "team=support", "--tenant", "acme")
		require.Equal(t, outcome{0, "team=support on 2026-01-02: 15 tokens\n", ""}, got)
	})
	t.Run("say that the budget of a label is unknown", func(t *testing.T) {
		c := &fakeClient{budgets: map[string]wire.BudgetState{"team=support": {Day: "2026-01-02"}}}
		got := starterWith(t, t.Context(), c, strings.NewReader(""), "budget", "--label", "team=support")
		note := "team=support on 2026-01-02: no budget is known " +
			"(the --providers or --config file of the workers has none, or no request has used it)\n"
		require.Equal(t, outcome{0, "", note}, got)
		got = starterWith(t, t.Context(), c, strings.NewReader(""), "budget", "--label", "team=support", "--json")
		require.Equal(t, outcome{0, `{"day":"2026-01-02"}` + "\n", note}, got)
	})
	for want, args := range map[string][]string{
		"-n: missing":                         {},
		"--tenant: requires --label":          {"-n", "demo", "--tenant", "acme"},
		"--cost -1: out of range":             {"-n", "demo", "--cost", "-1"},
		"--tokens: want 0 to 1000000000000":   {"-n", "demo", "--tokens", "-1"},
		"--none: cannot be used with":         {"-n", "demo", "--none", "--tokens", "1"},
		"--label: cannot be used with --name": {"-n", "demo", "--label", "team=support"},
		`--label "support": want LABEL=VALUE`: {"--label", "support"},
	} {
		got := starter(t, newFake(t), "", append([]string{"budget"}, args...)...)
		require.Equal(t, exit.Usage, got.code, want)
		require.Contains(t, got.errOut, want)
	}
}
