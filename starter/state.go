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
		Short: "Show the status, settings and messages of a context",
		Long: `Show the status, settings and messages of a context. Long messages are shortened
to one line, except with --json. A worker must be running.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runState(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.json, "json", false, "print one line of JSON")
	return command
}

func runState(ctx context.Context, o stateOptions) error {
	of, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	state, err := of.State(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(state)
	}
	return show.State(o.out, state)
}
