package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/agentlog"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

type ingestOptions struct {
	*app
	name   string
	format string
	file   string
	json   bool
	// outage is how long Temporal may be away in the middle of a log, and tryAgain
	// the wait before it is asked again.
	outage, tryAgain time.Duration
}

func newIngestCommand(a *app) *cobra.Command {
	o := ingestOptions{app: a, outage: time.Minute, tryAgain: time.Second}
	command := &cobra.Command{
		Use:   "ingest -n NAME --format droid|claude [FILE|-]",
		Short: "Add what a coding agent prints to a context, as it prints it",
		Long: `Add the log of a coding agent to a context: its messages, what its tools were told
and answered, and what else it printed. Without FILE the log comes from standard
input, and is in the context as soon as the agent has printed it. No model is
asked.

droid     what the Droid CLI prints with --output-format stream-json
claude    what Claude Code prints with --output-format stream-json

A log that is added again, or has gone on since, adds what is new. A line that
means nothing is a warning in the context. What looks like a key is removed, and
an output of more than about 1 MiB is cut in its middle, which says so.

` + exitReference,
		Example: `  droid exec --output-format stream-json "Fix the tests" | starter ingest -n fix --format droid
  starter ingest -n fix --format claude log.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			o.file = "-"
			if len(args) > 0 {
				o.file = args[0]
			}
			return runIngest(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.format, "format", "", "`FORMAT` of the log: droid or claude; required")
	flags.BoolVar(&o.json, "json", false, "print one JSON object on one line: contextName, events, repeated, warnings, refused")
	return command
}

func runIngest(ctx context.Context, o ingestOptions) (err error) {
	if err := checkName(o.name); err != nil {
		return err
	}
	format := agentlog.Format(o.format)
	if !slices.Contains(agentlog.Formats(), format) {
		return usagef("--format %q: want droid or claude", o.format)
	}
	log, err := o.log()
	if err != nil {
		return err
	}
	defer log.Close()
	c, to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	known, err := clientEventIDs(ctx, to)
	if err != nil {
		return err
	}
	i := ingestion{ingestOptions: o, to: to, known: known, ingested: ingested{ContextName: o.name}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = i.run(ctx, session.Entries(ctx, agentlog.Read(log, format), 0))
	return errors.Join(err, i.report())
}

// log is the file, or standard input.
func (o ingestOptions) log() (io.ReadCloser, error) {
	switch {
	case o.file != "-":
		file, err := os.Open(o.file)
		if err != nil {
			return nil, usageError{err}
		}
		return file, nil
	case o.inTerminal:
		return nil, usagef("nothing to read: name a FILE, or pipe the log in")
	default:
		return io.NopCloser(o.in), nil
	}
}

// clientEventIDs are those of all events in the log. A context remembers the
// newest thousand itself, and a log may be longer.
func clientEventIDs(ctx context.Context, of conversation) (map[string]bool, error) {
	ids := map[string]bool{}
	for e, err := range of.Events(ctx, "") {
		if errors.Is(err, session.ErrNoContext) {
			return ids, nil
		}
		if err != nil {
			return nil, err
		}
		if e.ClientEventID != "" && e.Tag() != event.TagInputRejected {
			ids[e.ClientEventID] = true
		}
	}
	return ids, nil
}

// ingested is what an ingestion prints.
type ingested struct {
	ContextName string `json:"contextName"`
	// Events were added, Repeated were there already, Refused are told of in the
	// log alone. Warnings are among the first.
	Events   int `json:"events"`
	Repeated int `json:"repeated"`
	Warnings int `json:"warnings"`
	Refused  int `json:"refused"`
}

// Limits of what is sent at once, such that a worker answers for it: a context
// counts the calls of an input before their results. And how long an event waits
// for others to go along.
const (
	maxBatchEvents = reducer.MaxOpenToolCalls / 4
	maxBatchBytes  = wire.MaxAppendBytes
	maxBatchWait   = 20 * time.Millisecond
)

// ingestion is an ingestion at work.
type ingestion struct {
	ingestOptions
	ingested
	to    conversation
	known map[string]bool
	// batch are the events to be sent next, and size the bytes of their JSON.
	batch []event.Event
	size  int
}

// run sends what is read. What has been read when ctx ends is still sent, as far
// as it can be within the grace that a command has.
func (i *ingestion) run(ctx context.Context, entries <-chan session.Entry) error {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	var full <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), i.flush(sending))
		case <-full:
			full = nil
			if err := i.flush(sending); err != nil {
				return err
			}
		case entry, ok := <-entries:
			if !ok || entry.Err != nil {
				return errors.Join(entry.Err, ctx.Err(), i.flush(sending))
			}
			if err := i.take(sending, entry.Event); err != nil {
				return err
			}
			if full == nil {
				full = time.After(maxBatchWait)
			}
		}
	}
}

// take adds an event to the batch, and sends it when there is no room for more.
func (i *ingestion) take(ctx context.Context, e event.Event) error {
	if i.known[e.ClientEventID] {
		i.Repeated++
		return nil
	}
	data, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	more := len(data) + len(`,`)
	if len(i.batch) == maxBatchEvents || i.size+more+len(`[]`) > maxBatchBytes {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	i.batch, i.size = append(i.batch, e), i.size+more
	return nil
}

// flush sends the batch.
func (i *ingestion) flush(ctx context.Context) error {
	batch := i.batch
	i.batch, i.size = nil, 0
	if len(batch) == 0 {
		return nil
	}
	return i.add(ctx, batch)
}

// add adds events. Those that the context refuses do not keep it from the others.
func (i *ingestion) add(ctx context.Context, events []event.Event) error {
	err := i.send(ctx, events)
	switch {
	case errors.Is(err, session.ErrRefused) && len(events) == 1:
		i.Refused++
		return nil
	case errors.Is(err, session.ErrRefused):
		for n := range events {
			if err := i.add(ctx, events[n:n+1]); err != nil {
				return err
			}
		}
		return nil
	case err != nil:
		return err
	}
	i.Events += len(events)
	for _, e := range events {
		if note, ok := e.Body.(event.Note); ok && note.Kind == event.NoteWarning {
			i.Warnings++
		}
	}
	return nil
}

// send sends events, again and again while Temporal is away: the context takes
// each once.
func (i *ingestion) send(ctx context.Context, events []event.Event) error {
	patience := time.Now().Add(i.outage)
	for noted := false; ; noted = true {
		_, err := i.to.Send(ctx, events...)
		if !errors.Is(err, session.ErrUnreachable) || time.Now().After(patience) {
			return err
		}
		if !noted {
			i.note("Temporal does not answer; trying again")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(i.tryAgain):
		}
	}
}

// report tells what has become of the log.
func (i *ingestion) report() error {
	if i.json {
		if err := i.printJSON(i.ingested); err != nil {
			return err
		}
	} else {
		text := fmt.Sprintf("ingested %d events into context %s", i.Events, i.name)
		if i.Repeated > 0 {
			text += fmt.Sprintf("; there already: %d", i.Repeated)
		}
		if i.Warnings > 0 {
			text += fmt.Sprintf("; warnings: %d", i.Warnings)
		}
		i.note("%s", text)
	}
	if i.Refused > 0 {
		return fmt.Errorf("the context refused %d of the events: see why with \"%s events -n %s\"", i.Refused, i.program(), i.name)
	}
	return nil
}
