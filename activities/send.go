package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// SendInput is the input of [Activities.Send].
type SendInput struct {
	ContextName   string          `json:"contextName"`
	ClientEventID string          `json:"clientEventId"`
	Event         json.RawMessage `json:"event"`
}

// Send sends an event to a context, as other clients do, so that contexts start with the same options. An event that
// is invalid or rejected is not retried.
func (a *Activities) Send(ctx context.Context, in SendInput) error {
	events, err := event.DecodeInput(in.Event)
	switch {
	case err != nil:
		return notAccepted(fmt.Errorf("send to context %q: %w", in.ContextName, err))
	case len(events) != 1:
		return notAccepted(fmt.Errorf("send to context %q: the input has %d events (want one)", in.ContextName, len(events)))
	}
	events[0].ClientEventID = in.ClientEventID
	to, err := a.options.Client.Open(in.ContextName)
	if err == nil {
		_, err = to.Send(ctx, events[0])
	}
	if errors.Is(err, client.ErrName) || errors.Is(err, client.ErrRefused) || errors.As(err, new(*event.FieldError)) {
		return notAccepted(err)
	}
	return err
}

func notAccepted(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), "NotAccepted", nil)
}
