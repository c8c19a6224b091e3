package activities_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// sender keeps what it is told to send.
type sender struct {
	sent []event.Event
	err  error
}

func (s *sender) Send(_ context.Context, contextName string, e event.Event) error {
	e.ContextName = contextName
	s.sent = append(s.sent, e)
	return s.err
}

func TestSendReplacesTheClientEventID(t *testing.T) {
	s := &sender{}
	err := activities.New(activities.Options{Sender: s}).Send(t.Context(), activities.SendInput{
		ContextName: "demo", ClientEventID: "schedule:daily-1",
		Event: []byte(`{"_tag":"UserMessageEvent","clientEventId":"always the same","content":"Hi"}`),
	})
	require.NoError(t, err)
	require.Len(t, s.sent, 1)
	require.Equal(t, []any{"demo", "schedule:daily-1", event.UserMessage{Content: "Hi"}},
		[]any{s.sent[0].ContextName, s.sent[0].ClientEventID, s.sent[0].Body})
}

func TestSendRetriesOnlyWhatMaySucceed(t *testing.T) {
	const message = `{"_tag":"UserMessageEvent","content":"Hi"}`
	for name, test := range map[string]struct {
		event string
		err   error
		want  string
		final bool
	}{
		"an unreachable server": {message, errors.New("temporal is unreachable"), "temporal is unreachable", false},
		"a rejected message":    {message, fmt.Errorf("%w: rejected", activities.ErrNotAccepted), "not accepted: rejected", true},
		"an invalid event":      {`{"_tag":"UserMessageEvent","content":7}`, nil, `send to context "demo": `, true},
		"a misspelt setting":    {`{"_tag":"UserMessage","content":"x","settings":{"topp":1}}`, nil, `UserMessageEvent.settings: unknown field "topp"`, true},
		"an event of a session": {`{"_tag":"SessionEndedEvent","reason":"x"}`, nil, `send to context "demo": `, true},
		"no event":              {``, nil, `send to context "demo": `, true},
		"two events":            {`[` + message + `,` + message + `]`, nil, "the input has 2 events (want one)", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sender{err: test.err}
			err := activities.New(activities.Options{Sender: s}).Send(t.Context(), activities.SendInput{
				ContextName: "demo", ClientEventID: "schedule:daily-1", Event: []byte(test.event),
			})
			require.ErrorContains(t, err, test.want)
			var failed *temporal.ApplicationError
			require.Equal(t, test.final, errors.As(err, &failed) && failed.NonRetryable())
			require.Equal(t, test.err != nil, len(s.sent) == 1)
		})
	}
}
