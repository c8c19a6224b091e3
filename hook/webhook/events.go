package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/retryafter"
)

// StageEvent is the type of an [EventMessage], and the name of its stage in a file of webhooks.
const StageEvent = "event"

// MaxEventBytes bounds the JSON of an event in an [EventMessage]. A larger one is sent as an
// [OmittedEvent].
const MaxEventBytes = 64 << 10

// EventMessage is the body of a call with events.
type EventMessage struct {
	Type      string    `json:"type"`      // [StageEvent]
	Timestamp time.Time `json:"timestamp"` // of the last event
	Data      EventData `json:"data"`
}

// EventData is [hook.Events] with events as JSON.
type EventData struct {
	ContextName string            `json:"contextName"`
	RunID       string            `json:"runId"`
	After       string            `json:"after,omitempty"`
	Cursor      string            `json:"cursor"`
	Epoch       int               `json:"epoch"`
	Events      []json.RawMessage `json:"events"` // [event.Event] or [OmittedEvent]
}

// OmittedEvent replaces an event that is too large. The log has its content.
type OmittedEvent struct {
	Tag          event.Tag `json:"_tag"`
	ID           string    `json:"id"`
	Timestamp    time.Time `json:"timestamp"`
	OmittedBytes int       `json:"omittedBytes"` // size of the JSON of the event
}

func (e endpoint) onEvent(ctx context.Context, events hook.Events) error {
	m := EventMessage{Type: StageEvent, Data: EventData{
		ContextName: events.ContextName, RunID: events.RunID, After: events.After, Cursor: events.Cursor, Epoch: events.Epoch,
	}}
	for _, one := range e.selected(events) {
		one.Body = withoutInternals(one.Body)
		data, err := json.Marshal(one)
		if err == nil && len(data) > MaxEventBytes {
			data, err = json.Marshal(OmittedEvent{one.Tag(), one.ID, one.Timestamp, len(data)})
		}
		if err != nil {
			return err
		}
		m.Data.Events, m.Timestamp = append(m.Data.Events, data), one.Timestamp
	}
	if len(m.Data.Events) == 0 {
		return nil
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = e.send(ctx, e.idOf(events), body, readAcceptance)
	return err
}

// selected returns the events that the endpoint receives.
func (e endpoint) selected(events hook.Events) []event.Event {
	isSelected := func(pattern string) bool { return event.MatchTool(pattern, events.ContextName) }
	switch {
	case len(e.contexts) > 0 && !slices.ContainsFunc(e.contexts, isSelected):
		return nil
	case len(e.tags) == 0:
		return events.Events
	}
	return slices.DeleteFunc(slices.Clone(events.Events), func(one event.Event) bool { return !slices.Contains(e.tags, string(one.Tag())) })
}

// withoutInternals removes what the log contains, but the body of a call must not contain.
func withoutInternals(body event.Body) event.Body {
	switch body := body.(type) {
	case event.AssistantMessage:
		body.ProviderState = nil
		return body
	case event.FileAttachment:
		body.Source = withoutBytes(body.Source)
		return body
	}
	return body
}

// idOf returns the same id for the same events of the same delivering run.
func (e endpoint) idOf(events hook.Events) string {
	identity := fmt.Sprintf("%q %q %q %q %d %d", e.name, events.ContextName, events.RunID, events.Cursor, len(events.Events), events.Epoch)
	return fmt.Sprintf("msg_%x", sha256.Sum256([]byte(identity)))
}

func readAcceptance(response *http.Response) (isTemporary bool, err error) {
	code := response.StatusCode
	if 200 <= code && code < 300 {
		return false, nil
	}
	err = fmt.Errorf("status %d (want 2xx)", code)
	if delay := retryafter.Of(response.Header, time.Now()); delay > 0 {
		return false, &hook.RetryAfterError{Delay: delay, Err: err}
	}
	return isTemporaryStatus(code), err
}
