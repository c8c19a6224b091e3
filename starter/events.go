package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type eventsOptions struct {
	*app
	name   string
	from   string
	run    string
	follow bool
	json   bool
	deltas bool
}

func newEventsCommand(a *app) *cobra.Command {
	o := eventsOptions{app: a}
	command := &cobra.Command{
		Use:   "events -n NAME [flags]",
		Short: "Show or follow the log of a context",
		Long: `Show the events of a context from the first one, across all its sessions. No
worker is needed.

With --follow, show new events as they are recorded, until Ctrl-C. If the context
does not exist yet, wait for it.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runEvents(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.from, "from", "", "start after the event with this `ID`, like demo:0007 (default: from the first event)")
	flags.StringVar(&o.run, "run", "", "show the log of the run with this `RUN_ID`, even if a reset abandoned it (default: the current run)")
	flags.BoolVarP(&o.follow, "follow", "f", false, "show new events as they are recorded, until Ctrl-C")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per line")
	flags.BoolVar(&o.deltas, "deltas", false, "also print live deltas, as TextDeltaEvent and ReasoningDeltaEvent; requires --follow and --json")
	return command
}

func runEvents(ctx context.Context, o eventsOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	switch {
	case o.deltas && !(o.follow && o.json):
		return usagef("--deltas: requires --follow and --json")
	case o.run != "" && o.follow:
		return usagef("--run: cannot be used with --follow")
	}
	if o.from != "" {
		if err := o.checkEventID("--from", o.name, o.from); err != nil {
			return err
		}
	}
	log, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if o.from != "" {
		if err := o.findFrom(ctx, log); err != nil {
			return err
		}
	}
	if o.run != "" {
		return o.print(log.RunEvents(ctx, o.run, o.from))
	}
	if !o.follow {
		return o.print(o.readLog(ctx, log, o.from))
	}
	if o.deltas {
		o.noteNotLive()
	}
	if err := o.print(o.followLog(ctx, log, client.FollowOptions{From: o.from, Deltas: o.deltas})); err != nil {
		return err
	}
	return ctx.Err()
}

// findFrom fails if the log lacks the event of --from: no event would follow it.
func (o eventsOptions) findFrom(ctx context.Context, log conversation) error {
	read := func(ctx context.Context, from string) iter.Seq2[event.Event, error] {
		if o.run != "" {
			return log.RunEvents(ctx, o.run, from)
		}
		return log.Events(ctx, from)
	}
	return findEvent(ctx, read, "--from", o.name, o.from)
}

var errNotInLog = errors.New("not in the log")

// findEvent fails with errNotInLog if a log lacks the event of a flag.
func findEvent(ctx context.Context, read func(context.Context, string) iter.Seq2[event.Event, error], flag, name, id string) error {
	before := ""
	if n := event.Counter(id); n > 1 {
		before = event.FormatID(name, n-1)
	}
	for e, err := range read(ctx, before) {
		if err != nil || e.ID == id {
			return err
		}
		break
	}
	last := ""
	for e, err := range read(ctx, "") {
		if err != nil {
			return err
		}
		last = e.ID
	}
	if last == "" {
		return nil // no event is recorded yet, and a note says that input waits
	}
	return fmt.Errorf("%s %s: %w (it has %s to %s)", flag, id, errNotInLog, event.FormatID(name, 1), last)
}

func (o eventsOptions) print(events iter.Seq2[event.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if err := o.printEvent(e, o.json); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printEvent(e event.Event, asJSON bool) error {
	if asJSON {
		return a.printJSON(e)
	}
	_, err := fmt.Fprintln(a.out, e.Timestamp.Local().Format(time.DateOnly), show.Line(e))
	return err
}
