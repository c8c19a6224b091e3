package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// PollTimeout is the maximum age of the last poll of a healthy worker. A long poll lasts at most a
// minute.
const PollTimeout = 2 * time.Minute

// Poller is a worker that has polled a task queue within [PollTimeout].
type Poller struct {
	Identity string
	Version  string // empty: unknown, as for workers before 0.2.0
}

// Pollers returns the workers that poll a task queue for tasks of a kind.
func Pollers(ctx context.Context, c sdkclient.Client, taskQueue string, kind enums.TaskQueueType) ([]Poller, error) {
	described, err := c.DescribeTaskQueue(ctx, taskQueue, kind)
	if err != nil {
		return nil, fmt.Errorf("describe task queue %q: %w", taskQueue, err)
	}
	var pollers []Poller
	for _, p := range described.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < PollTimeout {
			pollers = append(pollers, Poller{Identity: p.GetIdentity(), Version: versionOf(p)})
		}
	}
	return pollers, nil
}

var isVersion = regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString

// versionOf ignores the checksum that the SDK sends for workers without a build id.
func versionOf(p *taskqueuepb.PollerInfo) string {
	//lint:ignore SA1019 deployment options are for versioned workers
	if id := p.GetWorkerVersionCapabilities().GetBuildId(); isVersion(id) {
		return id
	}
	return ""
}

// KindName returns the word for a kind of tasks in messages, such as workflow.
func KindName(kind enums.TaskQueueType) string { return strings.ToLower(kind.String()) }

func (d *Deployment) polling(ctx context.Context) Result {
	all, versions := map[string]string{}, map[string]bool{}
	for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
		pollers, err := Pollers(ctx, d.temporal, d.TaskQueue, kind)
		if err != nil {
			return failed("list workers", err)
		}
		if len(pollers) == 0 {
			return failure(fmt.Sprintf("start a worker with --namespace %s --task-queue %s, or set --task-queue to that of the workers", d.Namespace, d.TaskQueue),
				"no worker has polled task queue %q for %s tasks within %v", d.TaskQueue, KindName(kind), PollTimeout)
		}
		for _, p := range pollers {
			all[p.Identity] = cmp.Or(p.Version, "unknown version")
			versions[all[p.Identity]] = true
		}
	}
	var workers []string
	for _, identity := range slices.Sorted(maps.Keys(all)) {
		workers = append(workers, fmt.Sprintf("%s (%s)", identity, all[identity]))
	}
	measured := fmt.Sprintf("task queue %q: %s", d.TaskQueue, strings.Join(workers, ", "))
	if len(versions) > 1 {
		return warning("complete the upgrade: replace the older workers; one that stopped is listed for 2 minutes", "%s", measured)
	}
	return ok("%s", measured)
}

// Report is the activity type with which a worker checks its own connections and providers. Its input is a
// [ReportInput], its result the findings.
const Report = "Doctor"

// ReportInput is the input of a [Report].
type ReportInput struct {
	Call bool `json:"call"` // send a request to each provider
}

const (
	reportTimeout    = 45 * time.Second
	reportStart      = 5 * time.Second
	reportCompletion = 35 * time.Second
)

func (d *Deployment) report(ctx context.Context) Result {
	found, err := d.execute(ctx, d.askWorker)
	var refused *temporal.ApplicationError
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.Message(), "unable to find activityType"):
		return skipped("the worker that received the request does not support reports: it is older than 0.2.0, or was built with package worker/contexts")
	case err != nil:
		return failure("see the log of the workers", "no worker reports: %s", text(err))
	}
	worker := ""
	for _, f := range found {
		worker = f.Worker
	}
	r := ok("from worker %s", worker)
	r.Reported = found
	return r
}

func (d *Deployment) askWorker(ctx workflow.Context) (found []Finding, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              d.TaskQueue,
		ScheduleToStartTimeout: reportStart,
		StartToCloseTimeout:    reportCompletion,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	err = workflow.ExecuteActivity(ctx, Report, ReportInput{Call: d.Call}).Get(ctx, &found)
	return found, err
}
