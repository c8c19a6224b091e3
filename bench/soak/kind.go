package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// kind is what the client of a context does, beside sending messages and
// interrupting.
type kind struct {
	name   string
	policy event.Policy
	// burst is how many messages the client sends at most before it waits for the
	// context to rest.
	burst int
	// tokens is the longest answer, every the longest time between two tokens.
	tokens int
	every  time.Duration
	// large adds large messages and attachments, signals sends plain signals with
	// the Temporal client, of at most 60 KB.
	large, signals bool
	// closes, resets and terminates are what else happens to the context.
	closes, resets, terminates bool
}

// kinds are taken in turn by the contexts.
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
}

// kindOf is the kind of the n-th context, without the faults that are left out.
func kindOf(n int, o options) kind {
	k := o.kinds[n%len(o.kinds)]
	k.large = k.large && !o.leavesOut(faultLarge)
	k.closes = k.closes && !o.leavesOut(faultClose)
	k.resets = k.resets && !o.leavesOut(faultReset)
	k.terminates = k.terminates && !o.leavesOut(faultTerminate)
	return k
}

// contextName says the kind, so that a problem tells it.
func contextName(n int, o options) string {
	return fmt.Sprintf("soak-%03d-%s", n, o.kinds[n%len(o.kinds)].name)
}

// kindsOf are those of some names, separated by commas; all for "".
func kindsOf(list string) ([]kind, error) {
	if list == "" {
		return kinds, nil
	}
	var some []kind
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-kinds %s: no such kind of context (%s)", name, kindNames())
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
