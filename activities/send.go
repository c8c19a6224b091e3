package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Sender sends events to contexts.
type Sender interface {
	// Send sends an event, which a context records once per client event id. It returns an
	// [ErrNotAccepted] if repeating it is useless.
	Send(ctx context.Context, contextName string, e event.Event) error
}

// ErrNotAccepted means that the event is invalid, or that the context rejected it.
var ErrNotAccepted = errors.New("not accepted")

// SendInput is the input of [Activities.Send].
type SendInput struct {
	ContextName   string          `json:"contextName"`
	ClientEventID string          `json:"clientEventId"`
	Event         json.RawMessage `json:"event"`
}

// Send sends an event to a context, as clients do. An event that is not accepted is not retried.
func (a *Activities) Send(ctx context.Context, in SendInput) error {
	events, err := event.DecodeInput(in.Event)
	switch {
	case err != nil:
		return notAccepted(fmt.Errorf("send to context %q: %w", in.ContextName, err))
	case len(events) != 1:
		return notAccepted(fmt.Errorf("send to context %q: the input has %d events (want one)", in.ContextName, len(events)))
	}
	events[0].ClientEventID = in.ClientEventID
	if err = a.options.Sender.Send(ctx, in.ContextName, events[0]); errors.Is(err, ErrNotAccepted) {
		return notAccepted(err)
	}
	return err
}

func notAccepted(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), "NotAccepted", nil)
}
