package telemetry

import (
	"maps"
	"regexp"

	"go.temporal.io/sdk/client"
)

const tagTaskQueue = "task_queue"

var processID = regexp.MustCompile(`/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// bounded replaces the id of a process in the names of task queues, such as that of the SDK on which a worker
// receives cancellations.
func bounded(tags map[string]string) map[string]string {
	if queue := tags[tagTaskQueue]; processID.MatchString(queue) {
		tags = maps.Clone(tags)
		tags[tagTaskQueue] = processID.ReplaceAllString(queue, "/PROCESS")
	}
	return tags
}

// temporalHandler records no ids of processes in the metrics of the Temporal SDK.
type temporalHandler struct{ client.MetricsHandler }

func (h temporalHandler) WithTags(tags map[string]string) client.MetricsHandler {
	return temporalHandler{h.MetricsHandler.WithTags(bounded(tags))}
}
