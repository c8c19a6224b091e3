package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// stateTimeout is short: a missing worker must not delay the interruption.
const stateTimeout = time.Second

type interruptOptions struct {
	*app
	name string
}

func newInterruptCommand(a *app) *cobra.Command {
	o := interruptOptions{app: a}
	command := &cobra.Command{
		Use:   "interrupt -n NAME",
		Short: "Interrupt the running answer of a context",
		Long: `Interrupt the running answer of a context and keep its text. Without a running
answer this has no effect. The command does not wait until the answer has
stopped.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runInterrupt(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	return command
}

func runInterrupt(ctx context.Context, o interruptOptions) error {
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	query, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, unknown := to.State(query)
	if err := to.Interrupt(ctx); err != nil {
		return err
	}
	if unknown == nil && state.Status != wire.StatusAnswering {
		o.note("context %s has no running answer", o.name)
		return nil
	}
	o.note("asked context %s to stop its answer", o.name)
	return nil
}
