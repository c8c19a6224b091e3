package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

type runningWorker struct {
	worker *contexts.Worker     // nil: not started
	conn   *contexts.Connection // nil: none
	tools  *tool.Set
	files  *os.Root     // nil: none
	mcp    *mcp.Servers // nil: none
	models *llm.Adapter
	// providers are the options with which models was last configured.
	providers atomic.Pointer[llm.Options]
}

// startWorker returns when contexts can answer. If the worker fails later, it calls end.
func (a *app) startWorker(ctx context.Context, end context.CancelCauseFunc, at endpoints, log *zap.Logger) (_ *runningWorker, err error) {
	s := a.settings
	readAttachment, err := attachmentReader(s.AttachmentsDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.config.Label("attachments-dir"), err)
	}
	r := &runningWorker{}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	if r.files, err = openFilesRoot(s.ToolFilesRoot); err != nil {
		return nil, fmt.Errorf("%s: %w", a.config.Label("tool-files-root"), err)
	}
	if !a.config.IsGiven("blob-url") {
		log.Info("no --blob-url: using a local folder as the blob store", zap.String("blobs", at.blobURL))
	}
	if r.conn, err = a.connectAll(ctx, at, log); err != nil {
		return nil, err
	}

	if r.mcp, err = a.startMCP(at.mcp, at.telemetry.Meters(), log); err != nil {
		return nil, err
	}
	if r.tools, err = s.tools(r.conn.Client(), r.files, r.mcp, log); err != nil {
		return nil, err
	}
	approve, err := a.approvals(r.tools, at.mcp)
	if err != nil {
		return nil, err
	}
	models := at.models
	models.ReadAttachment = readAttachment
	models.TraceContent = at.telemetry.TracesContent()
	models.Logger = logging.Structured(log, "llm", zap.WarnLevel)
	r.models = llm.New(models)
	r.providers.Store(&at.models)
	worker.SetStickyWorkflowCacheSize(s.CachedContexts)
	w, err := r.conn.NewWorker(contexts.Options{
		Part:          s.part(),
		Models:        r.models,
		Tools:         r.tools,
		Approve:       approve,
		Hooks:         a.withTitles(at, r, log),
		ContinueAfter: s.ContinueAfter,
		DrainTimeout:  s.DrainTimeout,
		Failover:      s.Failover,
		IdleClose:     s.IdleClose,
		Budgets:       at.budgets,
		TraceContent:  at.telemetry.TracesContent(),
		OnFatalError:  func(err error) { end(fmt.Errorf("worker failed: %w", err)) },
	})
	if err != nil {
		return nil, err
	}
	probe := &probe{modelURL: at.modelURL}
	if s.dev {
		// Without --dev, NATS is optional.
		probe.stream = r.conn.Stream
	}
	probe.register(w, s.part())
	a.registerReport(w, at, r)
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	r.worker = w
	if s.part() == contexts.OnlyActivities {
		// This worker could not run the workflow of the probe.
		return r, nil
	}
	return r, await(ctx, r.conn.Temporal, r.conn.Namespace, s.TaskQueue, readyInput{
		SearchAttributes: r.conn.SearchAttributes,
		DetailAttributes: r.conn.DetailAttributes,
		Activities:       s.part() != contexts.OnlyWorkflows,
	})
}

func (r *runningWorker) stop() {
	if r.worker != nil {
		r.worker.Stop()
	}
	if r.conn != nil {
		r.conn.Close()
	}
	if r.mcp != nil {
		r.mcp.Close()
	}
	if r.files != nil {
		_ = r.files.Close() // it was only read
	}
}
