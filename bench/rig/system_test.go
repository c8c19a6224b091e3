package rig

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestAnEventStreamHasTheTokensOfCoalescedDeltas(t *testing.T) {
	frames := "event: status\ndata: {\"status\":\"answering\"}\n\n" +
		"data: {\"_tag\":\"TextDeltaEvent\",\"requestId\":\"demo:r0001\",\"attempt\":1,\"index\":0,\"delta\":\"re:m1 1 2 \"}\n\n" +
		"id: demo:0002\ndata: {\"_tag\":\"UserMessageEvent\",\"id\":\"demo:0002\",\"content\":\"a b\"}\n\n"
	serve := func(text string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "/contexts/demo/events", r.URL.Path)
			require.Equal(t, "text/event-stream", r.Header.Get("Accept"))
			_, _ = w.Write([]byte(text))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	var seen []string
	for e, err := range eventStream(context.Background(), serve(frames), "demo") {
		require.NoError(t, err)
		switch body := e.Body.(type) {
		case event.TextDelta:
			seen = append(seen, body.Delta)
		case event.UserMessage:
			seen = append(seen, body.Content)
		}
	}
	require.Equal(t, []string{"re:m1 ", "1 ", "2 ", "a b"}, seen)

	for _, err := range eventStream(context.Background(), serve("event: problem\ndata: {\"title\":\"gone\"}\n\n"), "demo") {
		require.ErrorContains(t, err, "gone")
	}
}
