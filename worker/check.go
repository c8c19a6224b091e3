package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// check returns an error unless a worker on this host has polled Temporal recently. It ignores
// NATS, which contexts do not need.
func (a *app) check(ctx context.Context) error {
	at, err := a.configured(zap.NewNop())
	if err != nil {
		return err
	}
	c, err := dial(ctx, at)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if a.settings.part() != contexts.OnlyActivities {
		err = polls(ctx, c, a.settings.TaskQueue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	}
	if err == nil && a.settings.part() != contexts.OnlyWorkflows {
		err = polls(ctx, c, a.settings.TaskQueue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	}
	return err
}

func polls(ctx context.Context, c client.Client, taskQueue string, kind enums.TaskQueueType) error {
	pollers, err := doctor.Pollers(ctx, c, taskQueue, kind)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(pollers, func(p doctor.Poller) bool { return strings.HasSuffix(p.Identity, atThisHost()) }) {
		return fmt.Errorf("no worker on this host (identity *%s) has polled for %s tasks of task queue %q within %v (pollers on all hosts: %d)",
			atThisHost(), doctor.KindName(kind), taskQueue, doctor.PollTimeout, len(pollers))
	}
	return nil
}

// identity returns the identity of the worker in Temporal.
func identity() string { return fmt.Sprintf("%d%s", os.Getpid(), atThisHost()) }

func atThisHost() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return "@" + name
}
