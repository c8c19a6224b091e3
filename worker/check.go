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

// pollsWithin is the time in which a worker that takes work asks for more. It
// asks again after a minute at the latest, since no question waits longer.
const pollsWithin = 2 * time.Minute

// check is the health of a worker on this host as Temporal sees it: an error
// unless one has asked for work lately. It says nothing of NATS, without which
// contexts are answered too.
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

// polls is an error unless a worker on this host takes tasks of a kind.
func polls(ctx context.Context, c client.Client, taskQueue string, kind enums.TaskQueueType) error {
	described, err := c.DescribeTaskQueue(ctx, taskQueue, kind)
	if err != nil {
		return fmt.Errorf("describe task queue %q: %w", taskQueue, err)
	}
	pollers := described.GetPollers()
	if !slices.ContainsFunc(pollers, func(p *taskqueue.PollerInfo) bool {
		return strings.HasSuffix(p.GetIdentity(), atThisHost()) && time.Since(p.GetLastAccessTime().AsTime()) < pollsWithin
	}) {
		return fmt.Errorf("no worker on this host (*%s) has asked for %s tasks of task queue %q within %v; %d others are known",
			atThisHost(), strings.ToLower(kind.String()), taskQueue, pollsWithin, len(pollers))
	}
	return nil
}

// atThisHost ends the identity of every worker on this host.
func atThisHost() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return "@" + name
}
