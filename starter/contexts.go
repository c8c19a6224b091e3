package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// contextClient is the part of [client.Client] that the commands use.
type contextClient interface {
	Tenant(tenant string) (contextClient, error)
	Open(name string) (conversation, error)
	List(ctx context.Context, query string) iter.Seq2[client.Summary, error]
	Stored(ctx context.Context) iter.Seq2[string, error]
	Activity(ctx context.Context, s client.Summary) (client.Activity, error)
	Summary(ctx context.Context, name string) (client.Summary, error)
	Events(ctx context.Context, name, from string) iter.Seq2[event.Event, error]
	Watch(ctx context.Context, changed func(contextName string)) error
	Schedules(ctx context.Context, contextName string) iter.Seq2[client.Schedule, error]
	StoreUsage(ctx context.Context, names ...string) (client.StoreUsage, error)
	LabelBudget(ctx context.Context, label, value string) (wire.BudgetState, error)
	Live() bool
	LiveError() error
	Ping(ctx context.Context) error
	Limits() client.Limits
	Shutdown()
}

// conversation is the part of [client.Context] that the commands use.
type conversation interface {
	Name() string
	TaskQueue(ctx context.Context) (string, error)
	Send(ctx context.Context, events ...event.Event) (client.Receipt, error)
	Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error]
	UnattendedSince(ctx context.Context) (time.Time, error)
	Delivery(ctx context.Context, clientEventIDs ...string) (client.Delivery, error)
	Events(ctx context.Context, from string) iter.Seq2[event.Event, error]
	EventsAndWaiting(ctx context.Context, from string, waiting func(client.Waiting)) iter.Seq2[event.Event, error]
	RunEvents(ctx context.Context, runID, from string) iter.Seq2[event.Event, error]
	Follow(ctx context.Context, options client.FollowOptions) iter.Seq2[event.Event, error]
	State(ctx context.Context) (wire.State, error)
	Interrupt(ctx context.Context) error
	Close(ctx context.Context, reason string) error
	Delete(ctx context.Context, o client.DeleteOptions) (client.Deletion, error)
	StartDeletion(ctx context.Context, o client.DeleteOptions) error
	Deletion(ctx context.Context) (client.Deletion, error)
	Import(ctx context.Context, log iter.Seq2[event.Event, error], o client.ImportOptions) (client.Imported, error)
	Verify(ctx context.Context) (client.Verification, error)
	Branch(ctx context.Context, o client.BranchOptions) (client.Branched, error)
	Branches(ctx context.Context) (client.Branches, error)
	CheckTools(ctx context.Context, tools event.SetTools) (client.Offered, error)
	Evaluate(ctx context.Context, id string, e client.Evaluation) (client.Evaluated, error)
	Blob(ctx context.Context, ref string) ([]byte, error)
	Attachment(ctx context.Context, id string) (event.FileAttachment, error)
	Schedule(ctx context.Context, s client.Schedule) (client.Schedule, error)
	PauseSchedule(ctx context.Context, id string) error
	ResumeSchedule(ctx context.Context, id string) error
	DeleteSchedule(ctx context.Context, id string) error
}

type dialedClient struct{ *client.Client }

func (c dialedClient) Open(name string) (conversation, error) {
	opened, err := c.Client.Open(name)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func (c dialedClient) Tenant(tenant string) (contextClient, error) {
	of, err := c.Client.Tenant(tenant)
	if err != nil {
		return nil, err
	}
	return dialedClient{of}, nil
}

func dialClient(ctx context.Context, config client.Config) (contextClient, error) {
	dialed, err := client.Dial(ctx, config)
	if err != nil {
		return nil, err
	}
	return dialedClient{dialed}, nil
}

const dialTimeout = 5 * time.Second

// connect sets the client of the command, which [execute] shuts down.
func (a *app) connect(ctx context.Context) (contextClient, error) {
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := a.dial(dialCtx, a.clientConfig())
	if err != nil && ctx.Err() == nil && errors.Is(dialCtx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: no answer within %s", client.ErrUnreachable, dialTimeout)
	}
	if err == nil {
		a.client = c
	}
	return c, err
}

func (a *app) clientConfig() client.Config {
	c := a.connection
	config := client.Config{
		Address: c.Address, Namespace: c.Namespace, Profile: c.Profile, NATSURL: c.NATSURL, NATSAuth: c.NATSAuth,
		BlobURL: c.BlobURL, TaskQueue: c.TaskQueue, Tracers: a.tracers,
	}
	if a.log != nil {
		config.Logger = logging.Structured(a.log, "", zap.InfoLevel)
	}
	return config
}

// open connects and opens a context.
func (a *app) open(ctx context.Context, name string) (conversation, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return c.Open(name)
}

func checkName(name string) error {
	if name == "" {
		return usagef("-n: missing (want the NAME of a context)")
	}
	if err := event.ValidateContextName(name); err != nil {
		return exit.UsageError{Err: err}
	}
	return nil
}

// The error is a usage error.
func input(body event.Body) (event.Event, error) {
	e := event.New(body)
	if err := client.Validate(e); err != nil {
		return event.Event{}, exit.UsageError{Err: err}
	}
	return e, nil
}

func readLog(ctx context.Context, of conversation) (log []event.Event, err error) {
	for e, err := range of.Events(ctx, "") {
		if err != nil {
			return nil, err
		}
		log = append(log, e)
	}
	return log, nil
}
