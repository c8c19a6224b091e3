package telemetry

import (
	"maps"
	"regexp"

	"go.temporal.io/sdk/client"
)

// boundedTags replaces the id of a process in the names of task queues, such as wire.WorkerQueue.
type boundedTags struct{ client.MetricsHandler }

const tagTaskQueue = "task_queue"

var processID = regexp.MustCompile(`/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (b boundedTags) WithTags(tags map[string]string) client.MetricsHandler {
	if queue := tags[tagTaskQueue]; processID.MatchString(queue) {
		tags = maps.Clone(tags)
		tags[tagTaskQueue] = processID.ReplaceAllString(queue, "/PROCESS")
	}
	return boundedTags{b.MetricsHandler.WithTags(tags)}
}
