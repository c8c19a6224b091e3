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
		Short: "Stop the running answer of a context",
		Long: `Ask a context to stop its answer; what was said of it stays. When no answer
runs, nothing happens. It does not wait until the answer has stopped.

` + exitReference,
		Args: cobra.NoArgs,
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
	o.note("asked %s to stop its answer", o.name)
	return nil
}
