package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/golang/groupcache/lru"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/singleflight"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Without a worker, signals accumulate in the history of one run, and the server terminates a run
// whose history is too long. Send therefore checks the history before it signals. If the server
// does not respond, Send sends a few signals unchecked: they may arrive even if responses are lost.

// The server's default limits, and lower ones for signals that wait for a worker. The difference is
// for concurrent clients, and for the worker, which records each input once more.
const (
	maxSignals      = 10_000
	maxWaiting      = 9_000
	maxHistory      = 51_200 // events
	maxHistoryMiB   = 50
	maxWaitingBytes = 20 << 20
	// These apply when no signal waits for a worker. Runs continue as new long before.
	maxLength = 50_000
	maxBytes  = 45 << 20
)

const (
	// Between two checks, a client uses at most 1/quotaShare of the free space: a hundred clients fit.
	quotaShare   = 100
	quotaTTL     = time.Second
	maxQuotas    = 1000
	checkTimeout = time.Second
	maxUnchecked = (maxSignals - maxWaiting) / quotaShare // 10 signals; without a blob store, at most 0.6 MiB
)

type fullError struct{ figures string }

func (e *fullError) Error() string {
	return fmt.Sprintf("%v: %s (start a worker, or wait for the busy ones, then send again)", ErrFull, e.figures)
}
func (*fullError) Unwrap() error { return ErrFull }

type backpressure struct {
	mu     sync.Mutex
	quotas *lru.Cache // of *quota by context name
	checks singleflight.Group
}

func newBackpressure() backpressure { return backpressure{quotas: lru.New(maxQuotas)} }

type quota struct {
	signals, bytes int
	expires        time.Time
	unchecked      int // signals since the server last returned the size of the history
}

func (b *backpressure) quota(contextName string) *quota {
	if q, ok := b.quotas.Get(contextName); ok {
		return q.(*quota)
	}
	q := &quota{}
	b.quotas.Add(contextName, q)
	return q
}

func (b *backpressure) take(contextName string, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.quota(contextName)
	if q.signals < 1 || q.bytes < bytes || time.Now().After(q.expires) {
		q.signals = 0
		return false
	}
	q.signals, q.bytes = q.signals-1, q.bytes-bytes
	return true
}

func (b *backpressure) grant(contextName string, signals, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.quota(contextName) = quota{signals: signals / quotaShare, bytes: bytes / quotaShare, expires: time.Now().Add(quotaTTL)}
}

func (b *backpressure) takeUnchecked(contextName string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.quota(contextName)
	if q.unchecked >= maxUnchecked {
		return false
	}
	q.unchecked++
	return true
}

// checkHistory admits a signal. Concurrent signals to a context share a check.
func (c *Context) checkHistory(ctx context.Context, bytes int) error {
	b, isChecked := &c.client.backpressure, false
	for !isChecked && !b.take(c.name, bytes) {
		_, err, _ := b.checks.Do(c.name, func() (any, error) {
			isChecked = true
			return nil, c.describeHistory(ctx, bytes)
		})
		switch {
		case err == nil:
		case ctx.Err() == nil && (isTimeout(err) || outage(err) == ErrUnreachable) && b.takeUnchecked(c.name):
			return nil
		default:
			return err
		}
	}
	return nil
}

func (c *Context) describeHistory(ctx context.Context, bytes int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout) // others share it
	defer cancel()
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	var length, size int
	switch {
	case errors.As(err, new(*serviceerror.NotFound)):
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		length = int(d.GetWorkflowExecutionInfo().GetHistoryLength())
		size = int(d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
	}
	if err := checkSize(d, length, size+bytes); err != nil {
		return err
	}
	c.client.backpressure.grant(c.name, maxWaiting-length, maxWaitingBytes-size-bytes)
	return nil
}

// Every signal is a history event, so the length is an upper bound of the number of signals.
func checkSize(d *workflowservice.DescribeWorkflowExecutionResponse, length, size int) error {
	isWaiting := d.GetPendingWorkflowTask() != nil
	switch {
	case length >= maxLength:
		return &fullError{fmt.Sprintf("%s of %s history events", thousands(length), thousands(maxHistory))}
	case isWaiting && length >= maxWaiting:
		return &fullError{fmt.Sprintf("%s of %s signals", thousands(length), thousands(maxSignals))}
	case size >= maxBytes || isWaiting && size >= maxWaitingBytes:
		return &fullError{fmt.Sprintf("%.1f of %d MiB of history, the rest of which is reserved for a worker", float64(size)/(1<<20), maxHistoryMiB)}
	}
	return nil
}

// The history contains only a reference to a large input.
func historyBytes(size int) int {
	const entry = 512
	if size >= blobs.PayloadThreshold {
		return entry
	}
	return size + entry
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func isSignalLimit(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid) && strings.Contains(invalid.Message, "limit for signal events")
}
