package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// While no worker runs, everything that is sent stays in the history of one run,
// and the server ends a run whose history is too long. So before it signals, Send
// looks at the history and refuses in good time. When the server does not answer that
// in time, which may also mean that only its answers are lost, Send signals a few
// inputs without looking.

// ErrFull: the run of the context has no room for more input until a worker takes
// what waits. Sending again later is harmless.
var ErrFull = errors.New("full until a worker runs")

// Limits of a run, as the server has them by default, and how far Send goes. The
// difference is room for clients that send at the same moment, and for what the
// worker records of the input: every byte that waits is written once more.
const (
	maxSignals     = 10_000
	maxWaiting     = 9_000
	maxHistoryMB   = 50
	maxWaitingByte = 20 << 20
	// hardLength and hardBytes hold even when no input waits for a worker.
	// Workers continue as new long before.
	hardLength = 50_000
	hardBytes  = 45 << 20
)

// fullError is ErrFull with figures.
type fullError struct{ figures string }

func (e *fullError) Error() string { return fmt.Sprintf("%v (%s)", ErrFull, e.figures) }
func (*fullError) Unwrap() error   { return ErrFull }

// room remembers for a moment how much may be signalled to contexts without
// asking the server again.
type room struct {
	mu   sync.Mutex
	left map[string]allowance
	// blind is how many signals were sent to a context since the server last answered
	// how long its history is.
	blind map[string]int
}

// allowance is how many signals and bytes are free until a time.
type allowance struct {
	signals, bytes int
	until          time.Time
}

const (
	// allowanceShare is the part of the free room that one client may use
	// without asking: a hundred clients can do so at the same moment.
	allowanceShare = 100
	allowanceTime  = time.Second
	maxAllowances  = 1000
	// roomTimeout is how long Send waits for the length of a history.
	roomTimeout = time.Second
	// maxBlind is the same share of the room that is left for clients that do not
	// know of each other. Without a blob store that is 0.6 of 30 MB.
	maxBlind = (maxSignals - maxWaiting) / allowanceShare
)

// take uses an allowance and reports whether there was one.
func (r *room) take(contextName string, bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.left[contextName]
	if a.signals < 1 || a.bytes < bytes || time.Now().After(a.until) {
		delete(r.left, contextName)
		return false
	}
	a.signals, a.bytes = a.signals-1, a.bytes-bytes
	r.left[contextName] = a
	return true
}

// allow remembers a share of what is free.
func (r *room) allow(contextName string, signals, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil || len(r.left) >= maxAllowances {
		r.left = map[string]allowance{}
	}
	delete(r.blind, contextName)
	r.left[contextName] = allowance{signals / allowanceShare, bytes / allowanceShare, time.Now().Add(allowanceTime)}
}

// takeBlind reports whether a signal may be sent without looking.
func (r *room) takeBlind(contextName string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blind == nil || len(r.blind) >= maxAllowances {
		r.blind = map[string]int{}
	}
	if r.blind[contextName] >= maxBlind {
		return false
	}
	r.blind[contextName]++
	return true
}

// checkRoom returns an ErrFull when the history of the run has no room for
// another signal whose input takes so many bytes there.
func (c *Context) checkRoom(ctx context.Context, bytes int) error {
	if c.client.room.take(c.name, bytes) {
		return nil
	}
	look, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(look, wire.WorkflowID(c.name), "")
	var length, size int
	switch {
	case errors.As(err, new(*serviceerror.NotFound)):
		// A new run is empty.
	case err != nil && ctx.Err() == nil && isSilence(look, err) && c.client.room.takeBlind(c.name):
		return nil
	case err != nil:
		return err
	case d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		length = int(d.GetWorkflowExecutionInfo().GetHistoryLength())
		size = int(d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
	}
	if err := checkHistory(d, length, size+bytes); err != nil {
		return err
	}
	c.client.room.allow(c.name, maxWaiting-length, maxWaitingByte-size-bytes)
	return nil
}

// isSilence reports whether the server has not answered in time.
func isSilence(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.As(err, new(*serviceerror.DeadlineExceeded)) || errors.As(err, new(*serviceerror.Unavailable))
}

// checkHistory refuses a history that is too long. Every signal is an entry, so
// the length is an upper bound of the number of signals.
func checkHistory(d *workflowservice.DescribeWorkflowExecutionResponse, length, size int) error {
	isWaiting := d.GetPendingWorkflowTask() != nil
	switch {
	case length >= hardLength || isWaiting && length >= maxWaiting:
		return &fullError{fmt.Sprintf("%s of %s signals", thousands(length), thousands(maxSignals))}
	case size >= hardBytes || isWaiting && size >= maxWaitingByte:
		return &fullError{fmt.Sprintf("%.1f of %d MB, half of which a worker needs", float64(size)/1e6, maxHistoryMB)}
	}
	return nil
}

// bytesInHistory is about how much of a history an input of a size takes: input
// above the threshold is a reference.
func bytesInHistory(size int) int {
	const entry = 512
	if size >= blobs.PayloadThreshold {
		return entry
	}
	return size + entry
}

// thousands writes a number of entries with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// isSignalLimit reports whether the server refuses a signal because the run has
// had as many as it may have.
func isSignalLimit(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid) && strings.Contains(invalid.Message, "limit for signal events")
}
