package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestTheCacheOfStoreComparisonsKeepsUsedContexts(t *testing.T) {
	const contexts = 10_001
	store := blobstest.New(t).Store
	id, err := store.Identity(t.Context())
	require.NoError(t, err)
	f := &temporal{run: bound(t, id)}
	c := client.New(client.Options{Temporal: f, Archive: archive.New(store)})
	interrupt := func(name string) {
		opened, err := c.Open(name)
		require.NoError(t, err)
		require.NoError(t, opened.Interrupt(t.Context()))
	}
	interrupt("demo")
	for i := range contexts {
		interrupt(fmt.Sprintf("other-%d", i))
		if i%1000 == 0 {
			interrupt("demo")
		}
	}
	interrupt("demo")
	require.EqualValues(t, 1+contexts, f.described, "one comparison per context")
}

func TestTheCacheOfQuotasKeepsUsedContexts(t *testing.T) {
	const contexts = 1001
	synctest.Test(t, func(t *testing.T) { // no quota expires
		f := &temporal{run: running(3, 1000, true)}
		c := client.New(client.Options{Temporal: f})
		send := func(name string) {
			opened, err := c.Open(name)
			require.NoError(t, err)
			_, err = opened.Send(t.Context(), event.New(event.UserMessage{Content: "Hello"}))
			require.NoError(t, err)
		}
		send("demo")
		for i := range contexts {
			send(fmt.Sprintf("other-%d", i))
			if i%100 == 0 {
				send("demo")
			}
		}
		send("demo")
		require.EqualValues(t, 1+contexts, f.described, "one check per context")
	})
}
