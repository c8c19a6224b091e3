package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// agentCommand is the first argument of a process that runs a worker with tools and hooks.
const (
	agentCommand = "agent"
	agentQueue   = "agents"
)

// Names of the tools. Clients execute toolAsk.
const (
	toolOnce    = "once"    // not idempotent
	toolAgain   = "again"   // idempotent
	toolGuarded = "guarded" // as once; requires an approval
	toolFails   = "fails"
	toolAsk     = "ask"
	toolMissing = "nothing" // does not exist
)

// arguments of all tools.
type arguments struct {
	Key string `json:"key"`
	Ms  int    `json:"ms,omitempty"` // duration of the call
	// Retries is the number of attempts of toolAgain that fail before one succeeds.
	Retries int `json:"retries,omitempty"`
	Size    int `json:"size,omitempty"` // of the result in bytes
}

func (a arguments) String() string {
	data, _ := json.Marshal(a) // always encodes
	return string(data)
}

// result is the value that a call returns.
func (a arguments) result() string {
	text := "result of " + a.Key + " "
	return text + strings.Repeat("x", max(0, a.Size-len(text)))
}

// agentTools are the tools, limits and approvals of a context.
func agentTools() event.SetTools {
	settings := event.SetTools{MaxSteps: new(6), Parallel: new(3), ExpiryMs: new(int64(3000)), Approve: event.ApprovalRules{{Tool: toolGuarded}}}
	for _, name := range []string{toolOnce, toolAgain, toolGuarded, toolFails} {
		settings.Tools = append(settings.Tools, event.Tool{Pattern: name})
	}
	settings.Tools = append(settings.Tools, event.Tool{Name: toolAsk, Description: "Ask the user",
		Parameters: event.Object(`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`)})
	return settings
}

// Names of the hooks. The script of a message names the hook that acts on it.
const (
	hookInstruct = "instruct" // adds Script.Instructed to the request
	hookRefuse   = "refuse"   // refuses the request
	hookChange   = "change"   // puts checked before the answer
)

const checked = "checked "

func runAgent(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(agentCommand, flag.ContinueOnError)
	address := flags.String("address", "", "of the Temporal server")
	nats := flags.String("nats-url", "", "of the NATS server")
	blobURL := flags.String("blob-url", "", "of the blob store")
	recorder := flags.String("recorder", "", "URL that records the executions of tools and the deliveries of events")
	if err := flags.Parse(args); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	conn, err := contexts.Connect(ctx, client.Config{
		Temporal: &sdkclient.Options{HostPort: *address}, NATSURL: *nats, BlobURL: *blobURL, TaskQueue: agentQueue, Logger: logger,
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	var tools []tool.Tool
	for name, options := range map[string][]tool.Option{
		toolOnce: nil, toolGuarded: nil, toolFails: nil, toolAgain: {tool.Idempotent(), tool.Attempts(3)},
	} {
		t, err := tool.New(name, "Test "+name, func(ctx context.Context, in arguments) (string, error) { return execute(ctx, *recorder, name, in) }, options...)
		if err != nil {
			return err
		}
		tools = append(tools, t)
	}
	set, err := tool.NewSet(tool.Options{Logger: logger}, tools...)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	w, err := conn.NewWorker(contexts.Options{
		Models: llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv), Logger: logger}),
		Tools:  set, Hooks: hooks(*recorder), ContinueAfter: 150, DrainTimeout: 2 * time.Second,
		OnFatalError: func(err error) { failed <- err },
	})
	if err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println("ready")
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

func execute(ctx context.Context, recorder, name string, in arguments) (string, error) {
	var n int // of the call
	err := post(ctx, recorder+executionPath, execution{tool.ContextName(ctx), tool.CallID(ctx), name, json.RawMessage(in.String())}, &n)
	if err != nil {
		return "", err
	}
	tool.Progress(ctx, "begun")
	pause.For(ctx, time.Duration(in.Ms)*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case name == toolFails:
		return "", errors.New("it fails: " + in.Key)
	case n <= in.Retries:
		return "", tool.Retryable(fmt.Errorf("attempt %d fails: %s", n, in.Key))
	}
	return in.result(), nil
}

func hooks(recorder string) []hook.Hook {
	before := func(name string, act func(rig.Message) hook.Verdict) hook.Hook {
		return hook.Hook{Name: name, Before: func(_ context.Context, r hook.Request) (v hook.Verdict, _ error) {
			if m := newestIn(r); m.Script.Hook == name {
				v = act(m)
			}
			return v, nil
		}}
	}
	return []hook.Hook{
		before(hookInstruct, func(m rig.Message) hook.Verdict {
			return hook.AddInstructions(m.Script.Instructed, "")
		}),
		before(hookRefuse, func(m rig.Message) hook.Verdict { return hook.Refuse(m.Key) }),
		{Name: hookChange, After: func(_ context.Context, r hook.Request, answer hook.Response) (v hook.Verdict, _ error) {
			if answer.Text != "" && newestIn(r).Script.Hook == hookChange {
				v = hook.ReplaceText(checked+answer.Text, "checked")
			}
			return v, nil
		}},
		{Name: "observe", FromStart: true, OnEvent: func(ctx context.Context, events hook.Events) error {
			return post(ctx, recorder+deliveryPath, events, nil)
		}},
	}
}

func newestIn(r hook.Request) (m rig.Message) {
	for _, message := range slices.Backward(r.Messages) {
		if message.Role == reducer.RoleUser {
			m, _ = rig.ParseMessage(message.Content)
			break
		}
	}
	return m
}
