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
		Long: `End the session of a context, after interrupting a running answer. The command
does not wait for the end. The log remains, and the next message starts a new
session that continues it.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runClose(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().StringVar(&o.reason, "reason", "", "reason, a `TEXT` recorded in the log (default \"closed\")")
	return command
}

func runClose(ctx context.Context, o closeOptions) error {
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if err := to.Close(ctx, o.reason); err != nil {
		return err
	}
	o.note("asked context %s to end its session", o.name)
	return nil
}
