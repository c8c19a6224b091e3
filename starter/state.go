package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type stateOptions struct {
	*app
	name string
	json bool
}

func newStateCommand(a *app) *cobra.Command {
	o := stateOptions{app: a}
	command := &cobra.Command{
		Use:   "state -n NAME [--json]",
		Short: "Show what a context is doing, its settings and its messages",
		Long: `Ask a context for its state: what it is doing, its settings, its messages (for
people each on one line, in JSON whole). A worker must be running.

` + exitReference,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runState(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.json, "json", false, "print one JSON object on one line")
	return command
}

func runState(ctx context.Context, o stateOptions) error {
	c, of, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	state, err := of.State(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(state)
	}
	return show.State(o.out, state)
}
