package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type counts struct {
	// interrupts were requested by users, signals are plain signals, large are messages and
	// attachments of 64 KB and more.
	interrupts, signals, large atomic.Int64
	// Requests by outcome.
	answered, interrupted, failed                                     atomic.Int64
	killed, stopped, temporal, nats, blobs, closed, reset, terminated atomic.Int64
	// Messages by outcome; lostStored are stored messages that a termination lost. Events, runs,
	// and the maximum length and size of a history.
	recorded, stored, unknown, rejected, lost, lostStored atomic.Int64
	events, runs, entries, bytes                          atomic.Int64
	// Calls and their executions, approvals by outcome, answers to calls, reports of hooks, refused
	// requests, and requests that exceeded a budget.
	calls, executions, approved, denied, edited, expired, answers, hooks, refused, exceeded atomic.Int64
	// Events that a hook received, and how many of them again.
	delivered, repeated atomic.Int64
}

func (c *counts) line(since time.Duration) string {
	return fmt.Sprintf("%6v  %d answered, %d interrupted, %d failed | workers %d killed, %d stopped | outages %d temporal, %d nats, %d blobs | %d interrupts, %d large, %d signals, %d closed, %d reset, %d terminated",
		since.Round(time.Second), c.answered.Load(), c.interrupted.Load(), c.failed.Load(), c.killed.Load(), c.stopped.Load(),
		c.temporal.Load(), c.nats.Load(), c.blobs.Load(),
		c.interrupts.Load(), c.large.Load(), c.signals.Load(), c.closed.Load(), c.reset.Load(), c.terminated.Load())
}

func (c *counts) addOutcomes(j journal, log []event.Event) {
	logged := map[string]bool{}
	for _, e := range log {
		logged[e.ClientEventID] = true
	}
	for i, m := range j.sent {
		map[outcome]*atomic.Int64{recorded: &c.recorded, stored: &c.stored, unknown: &c.unknown, rejected: &c.rejected, lost: &c.lost}[m.outcome].Add(1)
		if m.outcome != lost && !logged[m.key] && m.outcome != unknown && !j.expect(i).must {
			c.lostStored.Add(1)
		}
	}
}

func (c *counts) addCalls(j journal, log []event.Event) {
	c.executions.Add(int64(len(j.executions)))
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.ToolCall:
			c.calls.Add(1)
		case event.ApprovalDecided:
			switch {
			case body.Decision == event.Deny:
				c.denied.Add(1)
			case len(body.Parameters) > 0:
				c.edited.Add(1)
			default:
				c.approved.Add(1)
			}
		case event.ToolResult:
			if strings.HasPrefix(textOf(body.Error), "expired") {
				c.expired.Add(1)
			}
		case event.HookApplied:
			c.hooks.Add(1)
			if body.Outcome == event.HookRefused {
				c.refused.Add(1)
			}
		case event.BudgetExceeded:
			c.exceeded.Add(1)
		}
	}
}

func (c *counts) addRun(entries, bytes int64) {
	c.runs.Add(1)
	storeMax(&c.entries, entries)
	storeMax(&c.bytes, bytes)
}

func storeMax(a *atomic.Int64, to int64) {
	for old := a.Load(); old < to && !a.CompareAndSwap(old, to); old = a.Load() {
	}
}

func (c *counts) summary(contexts int) string {
	return fmt.Sprintf(`calls: %d with %d executions, %d answers of users; decisions: %d approved, %d denied, %d edited; %d calls expired; hooks: %d reports, %d refused, %d events delivered, %d of them again; budgets: %d exceeded
messages: %d recorded at once, %d stored as signals, %d of unknown outcome, %d rejected by policy, %d reported as lost with a terminated run, %d stored and then lost with a terminated run
ok: nothing else lost, nothing duplicated in %d events of %d contexts; no run of %d ended by the server, the longest with %d entries, the largest with %.1f MB`,
		c.calls.Load(), c.executions.Load(), c.answers.Load(), c.approved.Load(), c.denied.Load(), c.edited.Load(), c.expired.Load(),
		c.hooks.Load(), c.refused.Load(), c.delivered.Load(), c.repeated.Load(), c.exceeded.Load(),
		c.recorded.Load(), c.stored.Load(), c.unknown.Load(), c.rejected.Load(), c.lost.Load(), c.lostStored.Load(),
		c.events.Load(), contexts, c.runs.Load(), c.entries.Load(), float64(c.bytes.Load())/1e6)
}

// missing returns what did not happen. Excluded faults are not missing.
func (c *counts) missing(o options) string {
	happened := map[faultName]*atomic.Int64{
		faultKill: &c.killed, faultStop: &c.stopped, faultTemporal: &c.temporal, faultNATS: &c.nats, faultBlobs: &c.blobs,
		faultClose: &c.closed, faultReset: &c.reset, faultTerminate: &c.terminated, faultLarge: &c.large,
	}
	var missing []string
	for _, name := range faultNames {
		if !o.excludes(name) && happened[name].Load() == 0 {
			missing = append(missing, string(name))
		}
	}
	for _, did := range []struct {
		what  string
		count *atomic.Int64
	}{
		{"execution of a call", &c.executions}, {"approval", &c.approved}, {"denial", &c.denied}, {"edit of a call", &c.edited},
		{"expiry of a call", &c.expired}, {"refusal of a hook", &c.refused},
		{"delivery to a hook", &c.delivered}, {"repeated delivery", &c.repeated}, {"exceeded budget", &c.exceeded},
	} {
		if did.count.Load() == 0 {
			missing = append(missing, did.what)
		}
	}
	return strings.Join(missing, ", ")
}
