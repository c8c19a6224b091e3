package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
)

func TestServeServesUntilItIsToldToStop(t *testing.T) {
	f := newFake(t, []event.Body{})
	ctx, stop := context.WithCancel(t.Context())
	out, line := io.Pipe()
	var logged bytes.Buffer // to be read when it has ended
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, &app{
			streams: streams{in: strings.NewReader(""), out: line, err: &logged},
			dial:    func(context.Context, session.Config) (client, error) { return &fakeClient{context: f}, nil },
		}, []string{"serve", "--listen", "127.0.0.1:0", "--json"})
	}()
	var at serving
	require.NoError(t, json.NewDecoder(out).Decode(&at))
	require.True(t, at.Deltas)
	response, err := http.Post(at.URL+"/contexts/demo/events", "application/json",
		strings.NewReader(`{"_tag":"UserMessageEvent","content":"Hello"}`))
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusAccepted, response.StatusCode, "%s", body)
	require.Contains(t, string(body), `"eventIds":["demo:0001"]`)
	stop()
	require.Zero(t, <-code, "to be told to stop is how it ends")
	require.Contains(t, logged.String(), `"path":"/contexts/demo/events"`)
	require.NotContains(t, logged.String(), "Hello")
}

func TestServeSaysThatAPortIsInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	got := starter(t, newFake(t), "", "serve", "--listen", address)
	require.Equal(t, exitFailure, got.code)
	require.Equal(t, "starter: "+address+" is in use: end what serves there, or choose another port with --listen\n", got.errOut)
	require.Empty(t, got.out, "it is not ready")
}

func TestServeSaysThatEverybodyIsLetIn(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true} {
		got := starterWith(t, ctx, &fakeClient{context: newFake(t)}, strings.NewReader(""), "serve", "--listen", listen)
		require.Equal(t, warns, strings.Contains(got.errOut, "there is no login"), "%s: %s", listen, got.errOut)
	}
}
