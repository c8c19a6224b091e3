package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type forkOptions struct {
	*app
	name string
	at   string
	as   string
	json bool
}

func newForkCommand(a *app) *cobra.Command {
	o := forkOptions{app: a}
	command := &cobra.Command{
		Use:   "fork -n NAME --at EVENT_ID --as NEW",
		Short: "Begin a context that goes on from an event of another one",
		Long: `Begin a context whose log is that of another one up to an event, under its own
name. From there on they have nothing to do with each other. However long the
log is, it is not copied: it stays in the archive of the workers, so the store
must be named as they have it.

An answer that was on its way at the event is cut off in the new context.

` + exitReference,
		Example: `  starter fork -n demo --at demo:0012 --as demo-2`,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return runFork(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.at, "at", "", "the last event that both have, by its `ID`, like demo:0012; required")
	flags.StringVar(&o.as, "as", "", "`NAME` of the new context; required")
	flags.BoolVar(&o.json, "json", false, "print one JSON object on one line: contextName, forkedFrom")
	return command
}

// forked is what a fork prints.
type forked struct {
	ContextName string `json:"contextName"`
	ForkedFrom  string `json:"forkedFrom"`
}

func runFork(ctx context.Context, o forkOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	if err := o.checkAt(o.name, o.at); err != nil {
		return err
	}
	if err := checkNewName(o.name, o.as); err != nil {
		return err
	}
	c, from, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	if err := from.Fork(ctx, o.at, o.as); err != nil {
		return err
	}
	if o.json {
		return o.printJSON(forked{o.as, o.at})
	}
	o.note("context %s goes on from %s", o.as, o.at)
	return nil
}

// checkAt refuses what is no id of an event of a context.
func (a *app) checkAt(name, at string) error {
	if n := event.Counter(at); n == 0 || at != event.FormatID(name, n) {
		return usagef("--at %q: want the id of an event of the context, like %s; \"%s events -n %s\" shows them",
			at, event.FormatID(name, 1), a.program(), name)
	}
	return nil
}

// checkNewName refuses what is no name for another context.
func checkNewName(name, as string) error {
	if as == "" || as == name {
		return usagef("--as %q: want the name of a new context", as)
	}
	if err := event.ValidateContextName(as); err != nil {
		return usagef("--as: %w", err)
	}
	return nil
}
