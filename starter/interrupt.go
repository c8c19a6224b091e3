package main

import (
	"context"

	"github.com/spf13/cobra"
)

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
stopped.

` + exitReference,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runInterrupt(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	return command
}

func runInterrupt(ctx context.Context, o interruptOptions) error {
	c, to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	if err := to.Interrupt(ctx); err != nil {
		return err
	}
	o.note("asked context %s to stop its answer", o.name)
	return nil
}
