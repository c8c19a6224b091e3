package telemetry

import (
	"maps"
	"regexp"
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
