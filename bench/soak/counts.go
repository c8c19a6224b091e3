package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// counts is what happened so far.
type counts struct {
	// asked are the interruptions that users asked for, signals the plain signals,
	// large the messages and attachments of 64 KB and more.
	asked, signals, large atomic.Int64
	// answered, interrupted and failed are requests.
	answered, interrupted, failed atomic.Int64
	// These are faults.
	killed, stopped, temporal, nats, blobs, closed, reset, terminated atomic.Int64
	// The others are what the check found: messages by what their senders know,
	// those of resetBack that a reset took back, those of gone that are not in the
	// log, events, runs, and the longest and the largest history.
	recorded, stored, unsure, refused, lost, gone atomic.Int64
	events, runs, entries, bytes                  atomic.Int64
}

// line is the progress.
func (c *counts) line(since time.Duration) string {
	return fmt.Sprintf("%6v  %d answered, %d interrupted, %d failed | workers %d killed, %d stopped | outages %d temporal, %d nats, %d blobs | %d interrupts, %d large, %d signals, %d closed, %d reset, %d terminated",
		since.Round(time.Second), c.answered.Load(), c.interrupted.Load(), c.failed.Load(), c.killed.Load(), c.stopped.Load(),
		c.temporal.Load(), c.nats.Load(), c.blobs.Load(),
		c.asked.Load(), c.large.Load(), c.signals.Load(), c.closed.Load(), c.reset.Load(), c.terminated.Load())
}

// note counts what became of the messages of a user.
func (c *counts) note(s story, log []event.Event) {
	there := map[string]bool{}
	for _, e := range log {
		there[e.ClientEventID] = true
	}
	for i, m := range s.sent {
		map[outcome]*atomic.Int64{recorded: &c.recorded, stored: &c.stored, unsure: &c.unsure, refused: &c.refused, lost: &c.lost}[m.outcome].Add(1)
		if m.outcome != lost && !there[m.key] && m.outcome != unsure && !s.expect(i).must {
			c.gone.Add(1)
		}
	}
}

func (c *counts) sawRun(entries, bytes int64) {
	c.runs.Add(1)
	raise(&c.entries, entries)
	raise(&c.bytes, bytes)
}

func raise(a *atomic.Int64, to int64) {
	for old := a.Load(); old < to && !a.CompareAndSwap(old, to); old = a.Load() {
	}
}

// summary is the result of the check.
func (c *counts) summary(contexts int) string {
	return fmt.Sprintf(`messages: %d recorded at once, %d stored as signals, %d unsure, %d refused by policy, %d lost with a terminated run and their senders told, %d more gone with one
ok: nothing lost, nothing doubled in %d events of %d contexts; no run of %d ended by the server, the longest with %d entries, the largest with %.1f MB`,
		c.recorded.Load(), c.stored.Load(), c.unsure.Load(), c.refused.Load(), c.lost.Load(), c.gone.Load(),
		c.events.Load(), contexts, c.runs.Load(), c.entries.Load(), float64(c.bytes.Load())/1e6)
}

// missing are the faults that never happened, of those that are not left out.
func (c *counts) missing(o options) string {
	happened := map[faultName]*atomic.Int64{
		faultKill: &c.killed, faultStop: &c.stopped, faultTemporal: &c.temporal, faultNATS: &c.nats, faultBlobs: &c.blobs,
		faultClose: &c.closed, faultReset: &c.reset, faultTerminate: &c.terminated, faultLarge: &c.large,
	}
	var missing []string
	for _, name := range faultNames {
		if !o.leavesOut(name) && happened[name].Load() == 0 {
			missing = append(missing, string(name))
		}
	}
	return strings.Join(missing, ", ")
}
