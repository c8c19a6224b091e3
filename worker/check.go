package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// pollTimeout is the maximum age of the last poll of a healthy worker. A long poll lasts at
// most a minute.
const pollTimeout = 2 * time.Minute

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
	if a.settings.only != contexts.OnlyActivities {
		err = polls(ctx, c, a.settings.taskQueue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	}
	if err == nil && a.settings.only != contexts.OnlyWorkflows {
		err = polls(ctx, c, a.settings.taskQueue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	}
	return err
}

func polls(ctx context.Context, c client.Client, taskQueue string, kind enums.TaskQueueType) error {
	described, err := c.DescribeTaskQueue(ctx, taskQueue, kind)
	if err != nil {
		return fmt.Errorf("describe task queue %q: %w", taskQueue, err)
	}
	pollers := described.GetPollers()
	if !slices.ContainsFunc(pollers, func(p *taskqueue.PollerInfo) bool {
		return strings.HasSuffix(p.GetIdentity(), atThisHost()) && time.Since(p.GetLastAccessTime().AsTime()) < pollTimeout
	}) {
		return fmt.Errorf("no worker on this host (identity *%s) has polled for %s tasks of task queue %q within %v (pollers on all hosts: %d)",
			atThisHost(), strings.ToLower(kind.String()), taskQueue, pollTimeout, len(pollers))
	}
	return nil
}

func atThisHost() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return "@" + name
}
