package main

import (
	"context"
	"slices"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor/providers"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// deployment is what this worker checks, with the connections that it has.
func (a *app) deployment(at endpoints, r *runningWorker) *doctor.Deployment {
	d := &doctor.Deployment{
		Address: at.temporal.HostPort, Namespace: at.temporal.Namespace, TaskQueue: a.settings.TaskQueue,
		Dial:  func(context.Context) (client.Client, error) { return r.conn.Temporal, nil },
		Store: func(context.Context) (*blobs.Store, error) { return r.conn.Archive.Store(), nil },
	}
	if r.conn.Stream != nil {
		d.NATS = func() (*stream.Conn, error) { return r.conn.Stream, nil }
	}
	return d
}

// registerReport lets `starter doctor` ask this worker for its findings.
func (a *app) registerReport(w worker.Registry, at endpoints, r *runningWorker) {
	report := func(ctx context.Context, in doctor.ReportInput) ([]doctor.Finding, error) {
		checks := slices.Concat(a.deployment(at, r).ConnectionChecks(), providers.Checks(*r.providers.Load(), in.Call), mcpChecks(r.mcp), approvalChecks(a.settings.Approve, r.tools), retentionChecks(at.retention))
		findings := slices.Collect(doctor.Run(ctx, checks))
		for i := range findings {
			findings[i].Worker = identity()
		}
		return findings, nil
	}
	w.RegisterActivityWithOptions(report, activity.RegisterOptions{Name: doctor.Report})
}

// startChecks logs in the background what is wrong with the deployment. The returned function ends the
// checks. What startWorker and announce have logged is not repeated.
func (a *app) startChecks(ctx context.Context, at endpoints, r *runningWorker, log *zap.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	d := a.deployment(at, r)
	if !r.conn.Stream.Connected() {
		d.NATS = nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for f := range doctor.Run(ctx, d.ConnectionChecks()) {
			if ctx.Err() == nil {
				logFinding(log, f)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func logFinding(log *zap.Logger, f doctor.Finding) {
	level := zap.WarnLevel
	switch {
	case !f.IsProblem():
		return
	case f.Severity == doctor.Error:
		level = zap.ErrorLevel
	}
	log.Log(level, "doctor: "+f.Check, zap.String("measured", f.Measured), zap.String("why", f.Why), zap.String("fix", f.Fix))
}
