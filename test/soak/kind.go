package main

import (
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// kind is a kind of context and of its user.
type kind struct {
	name   string
	policy event.Policy
	burst  int
	// tokens is the maximum length of an answer, every the maximum time between tokens.
	tokens int
	every  time.Duration
	// large adds large messages; signals sends plain signals of at most 60 KB.
	large, signals bool
	// What the user does to the context at random.
	closes, terminates bool
	// A worker of this program serves contexts that call tools or whose messages name hooks.
	calls, hooks bool
}

func (k kind) isAgent() bool { return k.calls || k.hooks }

var kinds = []kind{
	{name: "interrupt", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond},
	{name: "queue", policy: event.PolicyQueue, burst: 3, tokens: 40, every: 20 * time.Millisecond},
	{name: "reject", policy: event.PolicyReject, burst: 2, tokens: 40, every: 20 * time.Millisecond},
	{name: "large", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond, large: true},
	{name: "signals", policy: event.PolicyQueue, burst: 3, tokens: 40, every: 20 * time.Millisecond, signals: true},
	{name: "long", policy: event.PolicyQueue, burst: 12, tokens: 400, every: 20 * time.Millisecond},
	{name: "closes", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond, closes: true},
	{name: "terminates", policy: event.PolicyQueue, burst: 3, tokens: 100, every: 20 * time.Millisecond, closes: true, terminates: true},
	{name: "calls", policy: event.PolicyInterrupt, burst: 2, tokens: 20, every: 10 * time.Millisecond, calls: true},
	{name: "steered", policy: event.PolicySteer, burst: 2, tokens: 20, every: 10 * time.Millisecond, calls: true},
	{name: "hooks", policy: event.PolicyInterrupt, burst: 2, tokens: 40, every: 20 * time.Millisecond, hooks: true},
	{name: "agent", policy: event.PolicyQueue, burst: 2, tokens: 40, every: 20 * time.Millisecond, closes: true, calls: true, hooks: true},
}

func kindNames() string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}
