package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// counts is what happened so far.
type counts struct {
	// sent are the messages that Temporal took, unsure those of which that is
	// not known.
	sent, unsure atomic.Int64
	// asked are the interruptions that clients asked for.
	asked atomic.Int64
	// answered, interrupted and failed are requests.
	answered, interrupted, failed atomic.Int64
	killed, stopped               atomic.Int64
	// events are those of the logs that were checked.
	events atomic.Int64
}

func (c *counts) line(since time.Duration) string {
	return fmt.Sprintf("%6v  %d messages, %d unsure; %d answered, %d interrupted, %d failed; %d interrupts; workers: %d killed, %d stopped",
		since.Round(time.Second), c.sent.Load(), c.unsure.Load(),
		c.answered.Load(), c.interrupted.Load(), c.failed.Load(), c.asked.Load(), c.killed.Load(), c.stopped.Load())
}
