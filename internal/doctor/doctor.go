// Package doctor checks a deployment: Temporal, workers, NATS, the blob store and the clocks.
//
//	for finding := range doctor.Run(ctx, deployment.Checks()) {
//		…
//	}
//
// A [Deployment] is what the checks examine. `starter doctor` runs all of them. A worker runs those of its own
// connections at its start, and when a doctor asks it to ([Report]), with those of its providers and MCP servers.
//
// Checks leave nothing behind: they delete their workflows and blobs. Workflows of a killed process end within a
// minute. Findings contain no secrets.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Severity of a [Finding].
type Severity string

const (
	OK      Severity = "ok"
	Warning Severity = "warning" // it works, but slowly, or perhaps not for long, or not for everything
	Error   Severity = "error"   // something that is configured does not work
	Skipped Severity = "skipped" // not checked; Measured is the reason
)

// Finding is the result of a check.
type Finding struct {
	Check string `json:"check"` // like "nats.roundtrip"
	// Worker is the identity of the worker that made the check; empty: this process.
	Worker   string   `json:"worker,omitempty"`
	Severity Severity `json:"severity"`
	Measured string   `json:"measured"`
	Why      string   `json:"why"`           // why the result matters
	Fix      string   `json:"fix,omitempty"` // what to do; empty if there is nothing to do
	// DurationMs is how long the check took.
	DurationMs int64 `json:"durationMs"`

	isUnreachable bool
}

// IsUnreachable reports that Temporal did not respond.
func (f Finding) IsUnreachable() bool { return f.isUnreachable }

// IsProblem reports whether there is something to do.
func (f Finding) IsProblem() bool { return f.Severity == Warning || f.Severity == Error }

// Check is one measurement.
type Check struct {
	Name    string
	Why     string        // why the result matters
	Needs   string        // an earlier check; if it had an error or was skipped, this one is skipped; empty: none
	Timeout time.Duration // 0: defaultTimeout
	Run     func(context.Context) Result
}

// Result is what a check measured.
type Result struct {
	Severity Severity
	Measured string
	Fix      string
	Reported []Finding // by a worker, in addition

	isUnreachable bool
}

const (
	defaultTimeout = 5 * time.Second
	// grace is how long a check may take after its timeout to report what it waited for.
	grace = 500 * time.Millisecond
	// Cleanup bounds how long [Run] takes to delete what it created after its context is cancelled.
	Cleanup = deletionTimeout + grace
)

func ok(format string, args ...any) Result {
	return Result{Severity: OK, Measured: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Result {
	return Result{Severity: Skipped, Measured: fmt.Sprintf(format, args...)}
}

func warning(fix, format string, args ...any) Result {
	return Result{Severity: Warning, Measured: fmt.Sprintf(format, args...), Fix: fix}
}

func failure(fix, format string, args ...any) Result {
	return Result{Severity: Error, Measured: fmt.Sprintf(format, args...), Fix: fix}
}

// Run runs checks one after another.
func Run(ctx context.Context, checks []Check) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		var unusable []string // checks with an error, and skipped ones
		for _, c := range checks {
			began := time.Now()
			r := skipped("requires %s", c.Needs)
			if !slices.Contains(unusable, c.Needs) {
				r = perform(ctx, c)
			}
			if r.Severity == Error || r.Severity == Skipped {
				unusable = append(unusable, c.Name)
			}
			found := Finding{
				Check: c.Name, Why: c.Why, Severity: r.Severity, Measured: r.Measured, Fix: r.Fix,
				DurationMs: time.Since(began).Milliseconds(), isUnreachable: r.isUnreachable,
			}
			for _, f := range append([]Finding{found}, r.Reported...) {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// perform abandons a check that does not end by its timeout, such as one of a file system that hangs.
func perform(parent context.Context, c Check) Result {
	timeout := cmp.Or(c.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	done := make(chan Result, 1)
	go func() { done <- c.Run(ctx) }()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
	}
	wait := grace
	if parent.Err() != nil {
		wait = Cleanup // a timeout includes the time to delete, a cancellation does not
	}
	select {
	case r := <-done:
		return r
	case <-time.After(wait):
		return failure("find out what hangs, or why it is slow", "no result within %v", timeout)
	}
}

// latency rounds a duration for people.
func latency(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond)
	case d < time.Second:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Millisecond)
}
