package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Sender sends as any other client does, so that contexts start with the same options.
func Sender(c *client.Client) activities.Sender { return sender{c} }

type sender struct{ client *client.Client }

func (s sender) Send(ctx context.Context, contextName string, e event.Event) error {
	to, err := s.client.Open(contextName)
	if err == nil {
		_, err = to.Send(ctx, e)
	}
	if errors.Is(err, client.ErrName) || errors.Is(err, client.ErrRefused) || errors.As(err, new(*event.FieldError)) {
		return fmt.Errorf("%w: %w", activities.ErrNotAccepted, err)
	}
	return err
}
