package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// watched is the log of a worker.
type watched struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await returns when the log contains a text n times.
func (w *watched) await(t *testing.T, text string, n int) {
	t.Helper()
	timeout := time.After(time.Minute)
	for strings.Count(w.String(), text) < n {
		select {
		case <-w.changed:
		case <-timeout:
			require.FailNow(t, "the log lacks "+text, w.String())
		}
	}
}

func TestAReloadReplacesTheProviderForLaterAnswers(t *testing.T) {
	t.Parallel()
	gate := llmtest.NewGate()
	before := llmtest.Start(t, llmtest.Answer("The old", " model").HoldAfter(1, gate))
	after := llmtest.Start(t, llmtest.Answer("The new model"), llmtest.Answer("Still the new model"))
	file := filepath.Join(t.TempDir(), "chronicle.toml")
	configure := func(format string, args ...any) {
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, format, args...), 0o600))
	}
	provider := "[providers.openai]\nbase_url = %q\nkey = \"env:HOUSE_KEY\"\n"
	configure("[worker]\nlog_level = \"error\"\n"+provider, before.URL)
	worker := prepare(t, devArgs(t.TempDir(), "--config", file)...)
	worker.cmd.Env = append(worker.cmd.Env, "HOUSE_KEY=key-of-house")
	log := &watched{changed: make(chan struct{}, 1)}
	worker.cmd.Stderr = log
	worker.start()
	facts := worker.ready()
	demo, err := dial(t, facts).Open("demo")
	require.NoError(t, err)

	answer := make(chan string)
	go func() {
		var text string
		for e, err := range demo.Ask(t.Context(), event.New(event.UserMessage{Content: "Hello"})) {
			if message, ok := e.Body.(event.AssistantMessage); ok && err == nil {
				text = message.Content
			}
		}
		answer <- text
	}()
	require.NoError(t, gate.Reached(t.Context()))
	require.NotContains(t, log.String(), `"level":"info"`)
	configure("[worker]\nlog_level = \"debug\"\ndrain_timeout = \"9s\"\n"+provider, after.URL)
	worker.signal(syscall.SIGHUP)
	log.await(t, "reloaded the configuration", 1)
	log.await(t, `"settings":["worker.drain_timeout"]`, 1)
	gate.Open()
	require.Equal(t, "The old model", <-answer, "an answer keeps its provider")
	require.Equal(t, "The new model", ask(t, facts, "And now?"))
	log.await(t, `"level":"debug"`, 1)

	configure("[worker]\nlog_levle = \"info\"\n")
	worker.signal(syscall.SIGHUP)
	log.await(t, `chronicle.toml: unknown key \"worker.log_levle\" (did you mean \"worker.log_level\"?)`, 1)
	configure("[providers.openai]\nkey = \"sk-s3cr3t\"\n")
	worker.signal(syscall.SIGHUP)
	log.await(t, `chronicle.toml: provider \"openai\": key: want env:NAME or file:/absolute/path`, 1)
	require.Equal(t, "Still the new model", ask(t, facts, "And now?"))

	worker.signal(syscall.SIGTERM)
	require.Zero(t, worker.exit(), log.String())
	require.NotContains(t, log.String(), "s3cr3t")
	require.NotContains(t, log.String(), "key-of-house")
	for _, request := range append(before.Requests(), after.Requests()...) {
		require.Equal(t, "Bearer key-of-house", request.Header.Get("Authorization"))
	}
}
