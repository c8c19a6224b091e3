package gateway

import (
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// status is derived from the log, which does not show that a session was terminated from outside.
type status struct {
	status  wire.Status
	since   time.Time
	request string // the running request
}

func (s *status) apply(e event.Event) {
	switch body := e.Body.(type) {
	case event.LLMRequestStarted:
		*s = status{wire.StatusAnswering, e.Timestamp, body.RequestID}
	case event.SessionEnded:
		*s = status{status: wire.StatusClosed, since: e.Timestamp}
	case event.SessionStarted:
		*s = status{status: wire.StatusIdle, since: e.Timestamp}
	default:
		if s.status == "" || s.request != "" && e.Tag().EndsRequest() && s.request == event.RequestOf(e.Body) {
			*s = status{status: wire.StatusIdle, since: e.Timestamp}
		}
	}
}

func (s status) frame() []byte {
	return frame("", "status", encode(struct {
		Status wire.Status `json:"status"`
		Since  time.Time   `json:"since"`
	}{s.status, s.since}))
}
