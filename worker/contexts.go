package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

const (
	// stickyContexts are kept in memory between two messages. Another one is
	// read back from its history, which costs a few milliseconds and more the
	// longer it is.
	stickyContexts = 2048
	// handBack is the time that running requests have to go back to Temporal
	// when the worker stops.
	handBack = 10 * time.Second
)

// runningWorker is a worker that takes work.
type runningWorker struct {
	worker worker.Worker
	client client.Client
	stream *stream.Conn
}

// startWorker returns when a context can be answered. Later, end is called with
// the error that ends the worker, if one does.
func (a *app) startWorker(ctx context.Context, end context.CancelCauseFunc, at places, log *zap.Logger) (_ *runningWorker, err error) {
	s := a.settings
	readAttachment, err := attachmentReader(s.attachmentsDir)
	if err != nil {
		return nil, err
	}
	c, conn, err := connect(ctx, at, log)
	if err != nil {
		return nil, err
	}
	r := &runningWorker{client: c, stream: conn}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	attributes, err := useSearchAttributes(ctx, c, at.temporal.Namespace, log)
	if err != nil {
		return nil, err
	}

	worker.SetStickyWorkflowCacheSize(stickyContexts)
	w := worker.New(c, s.taskQueue, workerOptions(s.only, end))
	snapshots := activities.NewSnapshots()
	w.RegisterWorkflowWithOptions(
		workflows.New(workflows.Options{Snapshots: snapshots}),
		workflow.RegisterOptions{Name: wire.WorkflowType})
	w.RegisterActivity(activities.New(activities.Options{
		Temporal:         c,
		Models:           llm.New(llm.Options{Defaults: at.models, Getenv: a.getenv, ReadAttachment: readAttachment}),
		Stream:           conn,
		Snapshots:        snapshots,
		SearchAttributes: attributes,
		DefaultModel:     at.model(),
	}))
	probe := &probe{modelURL: at.modelURL}
	if s.dev {
		// Elsewhere contexts answer without NATS.
		probe.stream = conn
	}
	probe.register(w)
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	r.worker = w
	if s.only == onlyActivities {
		// Nobody here could take the workflow of the probe.
		return r, nil
	}
	return r, await(ctx, c, at.temporal.Namespace, s.taskQueue, readyInput{
		SearchAttributes: attributes,
		Activities:       s.only != onlyWorkflows,
	})
}

// useSearchAttributes reports whether contexts may set search attributes.
func useSearchAttributes(ctx context.Context, c client.Client, namespace string, log *zap.Logger) (bool, error) {
	err := registerSearchAttributes(ctx, c, namespace)
	if errors.Is(err, errAttributesRefused) {
		log.Warn("contexts run without search attributes: let an administrator register them", zap.Error(err),
			zap.String("hint", fmt.Sprintf("temporal operator search-attribute create --namespace %s --name %s --type Keyword --name %s --type Int --name %s --type Keyword",
				namespace, wire.AttributeStatus, wire.AttributeTurns, wire.AttributeModel)))
		return false, nil
	}
	return err == nil, err
}

func workerOptions(only string, end context.CancelCauseFunc) worker.Options {
	// Pollers in reserve are what keeps many contexts that start at once from
	// waiting for each other.
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 8,
		MinimumNumberOfPollers: 4,
		MaximumNumberOfPollers: 40,
	})
	return worker.Options{
		Interceptors:               []interceptor.WorkerInterceptor{workflows.Interceptor()},
		WorkflowTaskPollerBehavior: pollers,
		ActivityTaskPollerBehavior: pollers,
		// A heartbeat brings back that the activity was cancelled, so its pace
		// decides how soon that is known.
		MaxHeartbeatThrottleInterval:     time.Second,
		DefaultHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:                handBack,
		DisableWorkflowWorker:            only == onlyActivities,
		LocalActivityWorkerOnly:          only == onlyWorkflows,
		OnFatalError:                     func(err error) { end(fmt.Errorf("the worker cannot go on: %w", err)) },
	}
}

// stop hands running requests back and closes the connections.
func (r *runningWorker) stop() {
	if r.worker != nil {
		r.worker.Stop()
	}
	r.stream.Close()
	r.client.Close()
}
