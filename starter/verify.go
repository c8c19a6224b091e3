package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type verifyOptions struct {
	*app
	name string
	json bool
}

func newVerifyCommand(a *app) *cobra.Command {
	o := verifyOptions{app: a}
	command := &cobra.Command{
		Use:   "verify -n NAME [--json]",
		Short: "Validate the stored log of a context",
		Long: `Read the complete log of a context, in the archive and in the Temporal
histories, with the files and tool results in the blob store, and report missing
or damaged parts. The command changes nothing and needs no worker.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runVerify(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.json, "json", false, "print one line of JSON, including all problems")
	return command
}

func runVerify(ctx context.Context, o verifyOptions) error {
	of, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	found, err := of.Verify(ctx)
	if err != nil {
		return err
	}
	if o.json {
		err = o.printJSON(found)
	} else {
		err = o.print(found)
	}
	if err == nil && len(found.Problems) > 0 {
		err = fmt.Errorf("verify context %s: problems found: %d", o.name, len(found.Problems))
	}
	return err
}

func (o verifyOptions) print(found client.Verification) error {
	for _, problem := range found.Problems {
		if _, err := fmt.Fprintf(o.out, "%s: %s\n", problem.Place, problem.Text); err != nil {
			return err
		}
	}
	if len(found.Problems) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(o.out, "ok: %s in %s, %d in the history of the current run\n",
		show.Count(found.Events, "event", "events"), show.Count(found.Segments, "segment", "segments"), found.InHistory)
	return err
}
