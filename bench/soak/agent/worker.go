package agent

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	sdkclient "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/wire"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// Command is the first argument of a process that runs a worker.
const Command = "agent"

// Label and LabelValue are the label of requests that have a daily budget.
const (
	Label      = "team"
	LabelValue = "soak"
)

// Run runs a worker until a signal. It accepts the flags of rig.StartWorker, the URL of the
// [Executions], and the daily budget of the label.
func Run(arguments []string) error {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	address := flags.String("address", "", "of the Temporal server")
	nats := flags.String("nats-url", "", "of the NATS server")
	blobURL := flags.String("blob-url", "", "of the blob store")
	queue := flags.String("task-queue", "", "to work on")
	continueAfter := flags.Int("continue-as-new-after", 0, "history events")
	drain := flags.Duration("drain-timeout", 0, "for running answers")
	executions := flags.String("executions", "", "URL that records the executions of tools and the deliveries of events")
	budget := flags.Int64("budget", 0, "daily tokens of the label")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	store, err := blobs.Open(ctx, *blobURL, "default")
	if err != nil {
		return err
	}
	defer store.Close()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	temporal, err := sdkclient.DialContext(ctx, contexts.WithStore(sdkclient.Options{
		HostPort: *address, Logger: sdklog.NewStructuredLogger(logger),
		ConnectionOptions: sdkclient.ConnectionOptions{GrpcCompression: &sdkclient.GrpcCompressionNone{}},
		PayloadLimits:     sdkclient.PayloadLimitOptions{PayloadSizeWarning: wire.MaxInputBytes},
	}, store))
	if err != nil {
		return err
	}
	defer temporal.Close()
	conn, err := stream.Connect(*nats, stream.Options{Namespace: "default"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := contexts.RegisterSearchAttributes(ctx, temporal, "default"); err != nil {
		return err
	}
	storeID, err := store.Identity(ctx)
	if err == nil {
		err = contexts.BindStore(ctx, temporal, "default", storeID)
	}
	if err != nil {
		return err
	}
	tools, err := server{*executions}.tools()
	if err != nil {
		return err
	}
	set, err := tool.NewSet(tool.Options{Store: store, Logger: logger}, tools...)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	w := contexts.NewWorker(temporal, contexts.Options{
		TaskQueue: *queue, Archive: archive.New(store), StoreID: storeID, Stream: conn, SearchAttributes: true,
		Models: llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv), Logger: logger}),
		Tools:  set, Hooks: hooks(*executions), ContinueAfter: *continueAfter, DrainTimeout: *drain,
		Budgets:      []activities.LabelBudget{{Label: Label, Value: LabelValue, Limit: event.Budget{Tokens: budget}}},
		OnFatalError: func(err error) { failed <- err },
	})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println("ready", time.Now().UTC().Format(time.RFC3339Nano))
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
