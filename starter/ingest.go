package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/agent"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type ingestOptions struct {
	*app
	name   string
	format string
	file   string
	follow bool
	json   bool
	// outage is how long a send is retried while Temporal is unreachable, and tryAgain the
	// delay between attempts.
	outage, tryAgain time.Duration
	// poll is how often a followed file is read.
	poll time.Duration
}

func newIngestCommand(a *app) *cobra.Command {
	o := ingestOptions{app: a, outage: time.Minute, tryAgain: time.Second, poll: 250 * time.Millisecond}
	command := &cobra.Command{
		Use:   "ingest -n NAME [flags] [FILE|-]",
		Short: "Record the log of a coding agent in a context",
		Long: `Record the log of a coding agent in a context: messages, tool calls, tool
results and other output. Without FILE the log is read from standard input and
recorded as the agent prints it. With --follow, what the agent adds to FILE is
recorded until Ctrl-C. No model is called.

The format is recognized by the content. Any other file is refused before
anything is recorded:

` + formatsUsage() + `
Ingesting a log again, or a longer version of it, adds only events that are new.
Lines of new types are counted in a note, and broken ones recorded as warnings.
Probable API keys are removed. Outputs longer than about 1 MiB are truncated in
the middle, with a marker.`,
		Example: `  droid exec --output-format stream-json "Fix the tests" | starter ingest -n fix
  starter ingest -n fix --follow ~/.claude/projects/-home-ada-app/SESSION.jsonl`,
		Args: atMostOneArgument,
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
	flags.StringVar(&o.format, "format", "", "refuse a log of another `FORMAT`: "+oneOf(agent.Formats())+" (default: any)")
	flags.BoolVarP(&o.follow, "follow", "f", false, "record what is added to FILE, until Ctrl-C; a truncated or replaced file is read from its start")
	flags.BoolVar(&o.json, "json", false, "print one line of JSON: contextName, events, repeated, warnings, refused, skipped")
	return command
}

func formatsUsage() string {
	var b strings.Builder
	for _, f := range agent.Formats() {
		fmt.Fprintf(&b, "  %-8s%s\n", f, f.Usage())
	}
	return b.String()
}

// oneOf formats two or more values as "a, b or c".
func oneOf[T ~string](values []T) string {
	names := words(values)
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func words[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

func runIngest(ctx context.Context, o ingestOptions) (err error) {
	if err := checkName(o.name); err != nil {
		return err
	}
	if o.format != "" && !slices.Contains(agent.Formats(), agent.Format(o.format)) {
		return usagef("--format %q: want %s", o.format, oneOf(agent.Formats()))
	}
	if o.follow && o.file == "-" {
		return usagef("--follow: requires a FILE")
	}
	file, err := o.log()
	if file != nil {
		defer file.Close()
	}
	if err != nil {
		return err
	}
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	known, _, err := clientEventIDs(ctx, to)
	if err != nil {
		return err
	}
	i := ingestion{ingestOptions: o, to: to, known: known, ingested: ingested{ContextName: o.name}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := agent.Read(file, agent.Format(o.format))
	if o.follow {
		log = o.followed(ctx)
	}
	err = i.run(ctx, client.Entries(ctx, log, 0))
	if errors.Is(err, agent.ErrUnrecognized) && i.Events+i.Repeated == 0 {
		return usagef("%s: %w", cmp.Or(strings.TrimPrefix(o.file, "-"), "standard input"), err)
	}
	return errors.Join(err, i.report())
}

func (o ingestOptions) log() (io.ReadCloser, error) {
	switch {
	case o.file != "-":
		file, err := os.Open(o.file)
		if err != nil {
			return nil, exit.UsageError{Err: err}
		}
		return file, o.check(file)
	case o.inTerminal:
		return nil, usagef("log: missing (name a FILE, or pipe the log to standard input)")
	default:
		return io.NopCloser(o.in), nil
	}
}

// check refuses a file that is no log before a connection is made. What is followed may be empty yet.
func (o ingestOptions) check(file *os.File) error {
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		return usagef("%s: is %s (want a file)", o.file, kindOf(info.Mode()))
	}
	if err != nil || !info.Mode().IsRegular() || o.follow && info.Size() == 0 {
		return err
	}
	for _, err := range agent.Read(file, agent.Format(o.format)) {
		if errors.Is(err, agent.ErrUnrecognized) {
			return usagef("%s: %w", o.file, err)
		}
		break
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// clientEventIDs returns the counters of all recorded events by their client event ids, and the id
// of the newest event, "" without a log. The context itself deduplicates only by the newest thousand.
func clientEventIDs(ctx context.Context, of conversation) (counters map[string]int, last string, err error) {
	counters = map[string]int{}
	for e, err := range of.Events(ctx, "") {
		if errors.Is(err, client.ErrNoContext) {
			return counters, "", nil
		}
		if err != nil {
			return nil, "", err
		}
		last = e.ID
		if e.ClientEventID != "" && e.Tag() != event.TagInputRejected {
			counters[e.ClientEventID] = event.Counter(e.ID)
		}
	}
	return counters, last, nil
}

type ingested struct {
	ContextName string `json:"contextName"`
	// Events were added, Repeated were already recorded, Refused were rejected by the context.
	// Warnings are counted in Events, too. Skipped are lines of the log without an event.
	Events   int `json:"events"`
	Repeated int `json:"repeated"`
	Warnings int `json:"warnings"`
	Refused  int `json:"refused"`
	Skipped  int `json:"skipped"`
}

// maxBatchBytes is the limit of an update: unlike a signal, it returns rejections. maxBatchEvents is below the
// limit of open tool calls, because a context counts all calls of an input as open, even those whose results
// are in the same input.
// maxBatchWait is how long an event may wait for more events.
const (
	maxBatchEvents = reducer.MaxOpenToolCalls / 4
	maxBatchBytes  = wire.MaxAppendBytes
	maxBatchWait   = 20 * time.Millisecond
)

type ingestion struct {
	ingestOptions
	ingested
	to    conversation
	known map[string]int
	// batch holds the events to send next, and size the bytes of their JSON.
	batch []event.Event
	size  int
}

// After ctx ends, run still sends the events already read, within the grace period of the command.
func (i *ingestion) run(ctx context.Context, entries <-chan client.Entry) error {
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

func (i *ingestion) take(ctx context.Context, e event.Event) error {
	var skipped map[string]int
	if json.Unmarshal(e.Extra[agent.Skipped], &skipped) == nil {
		for _, lines := range skipped {
			i.Skipped += lines
		}
	}
	if _, ok := i.known[e.ClientEventID]; ok {
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

func (i *ingestion) flush(ctx context.Context) error {
	batch := i.batch
	i.batch, i.size = nil, 0
	if len(batch) == 0 {
		return nil
	}
	return i.add(ctx, batch)
}

// Events that the context rejects together are sent one by one.
func (i *ingestion) add(ctx context.Context, events []event.Event) error {
	err := i.send(ctx, events)
	switch {
	case errors.Is(err, client.ErrRefused) && len(events) == 1:
		i.Refused++
		return nil
	case errors.Is(err, client.ErrRefused):
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
		i.known[e.ClientEventID] = event.Counter(e.ID)
		if note, ok := e.Body.(event.Note); ok && note.Kind == event.NoteWarning {
			i.Warnings++
		}
	}
	return nil
}

// send sends events and retries while Temporal is unreachable. Repeats are deduplicated by
// client event id.
func (i *ingestion) send(ctx context.Context, events []event.Event) error {
	deadline := time.Now().Add(i.outage)
	for noted := false; ; noted = true {
		_, err := i.to.Send(ctx, events...)
		if !errors.Is(err, client.ErrUnreachable) || time.Now().After(deadline) {
			return err
		}
		if !noted {
			i.note("Temporal is unreachable; retrying")
		}
		if !pause.For(ctx, i.tryAgain) {
			return ctx.Err()
		}
	}
}

func (i *ingestion) report() error {
	if i.json {
		if err := i.printJSON(i.ingested); err != nil {
			return err
		}
	} else {
		text := fmt.Sprintf("ingested %s into context %s", count(i.Events, "event"), i.name)
		if i.Repeated > 0 {
			text += fmt.Sprintf("; already recorded: %d", i.Repeated)
		}
		if i.Skipped > 0 {
			text += fmt.Sprintf("; lines not recorded: %d", i.Skipped)
		}
		if i.Warnings > 0 {
			text += fmt.Sprintf("; warnings: %d", i.Warnings)
		}
		i.note("%s", text)
	}
	if i.Refused > 0 {
		return fmt.Errorf("ingest into context %s: events rejected: %d (see why with \"%s events -n %[1]s\")", i.name, i.Refused, i.program())
	}
	return nil
}
