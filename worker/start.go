package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/attributes"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

type runningWorker struct {
	worker worker.Worker
	client client.Client
	stream *stream.Conn
	blobs  *blobs.Store
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
	if r.blobs, err = blobs.Open(ctx, at.blobURL, at.temporal.Namespace); err != nil {
		return nil, fmt.Errorf("%s: %w", a.config.Label("blob-url"), err)
	}
	r.blobs.Measure(at.telemetry.Meters())
	if !a.config.IsGiven("blob-url") {
		log.Info("no --blob-url: using a local folder as the blob store", zap.String("blobs", at.blobURL))
	}
	at.temporal = contexts.WithStore(at.temporal, r.blobs)
	c, conn, err := connectAll(ctx, at, log)
	if err != nil {
		return nil, err
	}
	r.client, r.stream = c, conn
	storeID, err := bindStore(ctx, r, at.temporal.Namespace, log)
	if err != nil {
		return nil, err
	}
	attributes, err := useSearchAttributes(ctx, c, at.temporal.Namespace, log)
	if err != nil {
		return nil, err
	}

	logs := archive.New(r.blobs)
	if r.mcp, err = a.startMCP(at.mcp, at.telemetry.Meters(), log); err != nil {
		return nil, err
	}
	if r.tools, err = s.tools(r.blobs, eventlog.New(c, at.temporal.Namespace, logs), r.files, r.mcp, log); err != nil {
		return nil, err
	}
	models := at.models
	models.ReadAttachment = readAttachment
	models.TraceContent = at.telemetry.TracesContent()
	models.Logger = logging.Structured(log, "llm", zap.WarnLevel)
	r.models = llm.New(models)
	r.providers.Store(&at.models)
	worker.SetStickyWorkflowCacheSize(s.CachedContexts)
	w := contexts.NewWorker(c, contexts.Options{
		Namespace:        at.temporal.Namespace,
		TaskQueue:        s.TaskQueue,
		Part:             s.part(),
		Models:           r.models,
		Tools:            r.tools,
		Hooks:            at.hooks,
		Stream:           conn,
		Archive:          logs,
		StoreID:          storeID,
		ContinueAfter:    s.ContinueAfter,
		DrainTimeout:     s.DrainTimeout,
		Failover:         s.Failover,
		IdleClose:        s.IdleClose,
		SearchAttributes: attributes,
		Budgets:          at.budgets,
		Meters:           at.telemetry.Meters(),
		Tracers:          at.telemetry.Tracers(),
		TraceContent:     at.telemetry.TracesContent(),
		OnFatalError:     func(err error) { end(fmt.Errorf("worker failed: %w", err)) },
	})
	probe := &probe{modelURL: at.modelURL}
	if s.dev {
		// Without --dev, NATS is optional.
		probe.stream = conn
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
	return r, await(ctx, c, at.temporal.Namespace, s.TaskQueue, readyInput{
		SearchAttributes: attributes,
		Activities:       s.part() != contexts.OnlyWorkflows,
	})
}

func bindStore(ctx context.Context, r *runningWorker, namespace string, log *zap.Logger) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// A worker must not write an identity into its store if the namespace has another store.
	id, err := r.blobs.ReadIdentity(ctx)
	if err == nil && id == "" {
		id, err = contexts.BoundStore(ctx, r.client, namespace)
		if err == nil && id != "" {
			return "", blobs.OtherStore("namespace "+namespace, id, "")
		}
		if err != nil && !errors.Is(err, contexts.ErrStoreRefused) {
			return "", err
		}
		id, err = r.blobs.Identity(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("--blob-url or BLOB_URL: %w", err)
	}
	err = contexts.BindStore(ctx, r.client, namespace, id)
	if errors.Is(err, contexts.ErrStoreRefused) {
		log.Warn("cannot record the blob store in the namespace: use the same --blob-url for all workers and clients", zap.Error(err))
		err = nil
	}
	return id, err
}

func useSearchAttributes(ctx context.Context, c client.Client, namespace string, log *zap.Logger) (bool, error) {
	err := contexts.RegisterSearchAttributes(ctx, c, namespace)
	if errors.Is(err, contexts.ErrAttributesRefused) {
		log.Warn("contexts run without search attributes until an administrator registers them", zap.Error(err),
			zap.String("fix", attributes.Command(namespace)))
		return false, nil
	}
	return err == nil, err
}

func (r *runningWorker) stop() {
	if r.worker != nil {
		r.worker.Stop()
	}
	r.stream.Close()
	if r.client != nil {
		r.client.Close()
	}
	if r.mcp != nil {
		r.mcp.Close()
	}
	if r.files != nil {
		_ = r.files.Close() // it was only read
	}
	if r.blobs != nil {
		_ = r.blobs.Close() // the worker writes nothing any more
	}
}
