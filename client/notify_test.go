package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func TestASendWakesFollowersOfAContextThatDoesNotExist(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := &temporal{update: func(sdkclient.UpdateWorkflowOptions) (wire.Appended, error) {
				return wire.Appended{EventIDs: []string{"demo:0002"}}, nil
			}}
			c := open(t, f)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range c.Follow(ctx, client.FollowOptions{Delay: delay}) {
				}
			}()
			time.Sleep(10500 * time.Millisecond) // fake time
			synctest.Wait()
			before := f.described
			if delay > 0 {
				require.Zero(t, before, "nothing is read during the delay")
			}
			_, err := c.Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
			require.NoError(t, err)
			synctest.Wait()
			require.EqualValues(t, before+1, f.described, "the log is read at once")
			cancel()
			<-ended
		})
	}
}
