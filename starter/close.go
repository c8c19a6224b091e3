package main

import (
	"context"

	"github.com/spf13/cobra"
)

type closeOptions struct {
	*app
	name   string
	reason string
}

func newCloseCommand(a *app) *cobra.Command {
	o := closeOptions{app: a}
	command := &cobra.Command{
		Use:   "close -n NAME [--reason TEXT]",
		Short: "End the session of a context",
		Long: `Ask a context to end its session, after stopping a running answer. It does not
wait until that is done. The log stays, and the next message begins a session
that continues it.

` + exitReference,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runClose(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().StringVar(&o.reason, "reason", "", "`TEXT` for the log (default \"closed\")")
	return command
}

func runClose(ctx context.Context, o closeOptions) error {
	c, to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	if err := to.Close(ctx, o.reason); err != nil {
		return err
	}
	o.note("asked %s to end its session", o.name)
	return nil
}
