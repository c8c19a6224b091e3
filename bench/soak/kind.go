package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type kind struct {
	name   string
	policy event.Policy
	burst  int
	// tokens is the maximum length of an answer, every the maximum time between tokens.
	tokens int
	every  time.Duration
	// large adds large messages and attachments; signals sends plain signals of at most 60 KB.
	large, signals bool
	// What the user does to the context at random.
	closes, resets, terminates bool
	// The contexts of agents call tools, their messages name hooks, or they have budgets.
	calls, hooks, budgets bool
	steps                 int // maximum of a turn with calls; 0: 4
}

// isAgent reports whether a worker with tools, hooks and budgets serves the context.
func (k kind) isAgent() bool { return k.calls || k.hooks || k.budgets }

var kinds = []kind{
	{name: "interrupt", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond},
	{name: "queue", policy: event.PolicyQueue, burst: 3, tokens: 40, every: 20 * time.Millisecond},
	{name: "reject", policy: event.PolicyReject, burst: 2, tokens: 40, every: 20 * time.Millisecond},
	{name: "large", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond, large: true},
	{name: "signals", policy: event.PolicyQueue, burst: 3, tokens: 40, every: 20 * time.Millisecond, signals: true},
	{name: "long", policy: event.PolicyQueue, burst: 12, tokens: 400, every: 20 * time.Millisecond},
	{name: "closes", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond, closes: true},
	{name: "resets", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond, resets: true},
	{name: "terminates", policy: event.PolicyQueue, burst: 2, tokens: 40, every: 20 * time.Millisecond, terminates: true},
	{name: "all", policy: event.PolicyQueue, burst: 3, tokens: 100, every: 20 * time.Millisecond, closes: true, resets: true, terminates: true},
	{name: "calls", policy: event.PolicyInterrupt, burst: 2, tokens: 20, every: 10 * time.Millisecond, calls: true},
	{name: "steered", policy: event.PolicySteer, burst: 2, tokens: 20, every: 10 * time.Millisecond, calls: true, steps: 8},
	{name: "hooks", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond, hooks: true},
	{name: "budgets", policy: event.PolicyQueue, burst: 2, tokens: 40, every: 20 * time.Millisecond, budgets: true},
	{name: "agent", policy: event.PolicyQueue, burst: 2, tokens: 40, every: 20 * time.Millisecond, calls: true, hooks: true},
	{name: "agent-all", policy: event.PolicyInterrupt, burst: 2, tokens: 20, every: 10 * time.Millisecond, closes: true, resets: true, terminates: true, calls: true, hooks: true},
}

func kindOf(n int, o options) kind {
	k := o.kinds[n%len(o.kinds)]
	k.large = k.large && !o.excludes(faultLarge)
	k.closes = k.closes && !o.excludes(faultClose)
	k.resets = k.resets && !o.excludes(faultReset)
	k.terminates = k.terminates && !o.excludes(faultTerminate)
	return k
}

func contextName(n int, o options) string {
	return fmt.Sprintf("soak-%03d-%s", n, o.kinds[n%len(o.kinds)].name)
}

func kindsOf(list string) ([]kind, error) {
	if list == "" {
		return kinds, nil
	}
	var some []kind
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-kinds %s: unknown kind of context (%s)", name, kindNames())
		}
		some = append(some, kinds[i])
	}
	return some, nil
}

func kindNames() string {
	var texts []string
	for _, k := range kinds {
		texts = append(texts, k.name)
	}
	return strings.Join(texts, ", ")
}
