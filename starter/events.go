package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
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
		Short: "Show the log of a context, and follow it",
		Long: `Show the events of a context, from the first one on, over all its sessions. No
worker is needed for it.

With --follow it goes on with what is added, until Ctrl-C, and waits for a
context that is not there yet.

` + exitReference,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runEvents(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.from, "from", "", "begin after the event with this `ID`, like demo:0007 (default: at the first)")
	flags.StringVar(&o.run, "run", "", "the log of the run with this `RUN_ID`, also of one that a reset has abandoned (default: the current run)")
	flags.BoolVarP(&o.follow, "follow", "f", false, "go on with what is added, until Ctrl-C")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per line")
	flags.BoolVar(&o.deltas, "deltas", false, "with --follow and --json: live deltas too, as TextDeltaEvent")
	return command
}

func runEvents(ctx context.Context, o eventsOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	switch {
	case o.deltas && !(o.follow && o.json):
		return usagef("--deltas needs --follow and --json")
	case o.run != "" && o.follow:
		return usagef("--run does not go with --follow")
	case o.from != "" && (event.Counter(o.from) == 0 || !strings.HasPrefix(o.from, o.name+":")):
		return usagef("--from %q: want the id of an event of the context, like %s", o.from, event.FormatID(o.name, 1))
	}
	c, log, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	if o.run != "" {
		return o.print(log.RunEvents(ctx, o.run, o.from))
	}
	if !o.follow {
		return o.print(log.Events(ctx, o.from))
	}
	if o.deltas {
		o.noteNotLive(c)
	}
	if err := o.print(log.Follow(ctx, session.FollowOptions{From: o.from, Deltas: o.deltas})); err != nil {
		return err
	}
	return ctx.Err()
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

// printEvent prints an event, as JSON or as a line for people.
func (a *app) printEvent(e event.Event, asJSON bool) error {
	if asJSON {
		return a.printJSON(e)
	}
	_, err := fmt.Fprintln(a.out, show.Line(e))
	return err
}
