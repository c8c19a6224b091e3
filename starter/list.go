package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

type listOptions struct {
	*app
	query string
	json  bool
}

func newListCommand(a *app) *cobra.Command {
	o := listOptions{app: a}
	command := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the contexts, open ones first",
		Long: `List the contexts of the namespace: first the open ones, most recently started
first, then the closed ones, most recently ended first. The start is that of the
newest Temporal run. The list is eventually consistent: changes appear after
about a second.`,
		Example: `  starter list --query 'ContextStatus = "waiting"'
  starter list --query 'ContextTurns > 10' --json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runList(command.Context(), o) },
	}
	command.Flags().StringVar(&o.query, "query", "",
		"Temporal list `FILTER`; it may use ContextStatus, ContextTurns and ContextModel (default: all contexts)")
	command.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	return command
}

func runList(ctx context.Context, o listOptions) error {
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	if o.json {
		for summary, err := range c.List(ctx, o.query) {
			if err != nil {
				return explainFilter("--query", o.query, err)
			}
			if err := o.printJSON(summary); err != nil {
				return err
			}
		}
		return nil
	}
	return o.printTable(ctx, c)
}

// explainFilter names the flag of a list filter that Temporal rejects.
func explainFilter(flag, filter string, err error) error {
	// Errors of the Temporal API implement this interface; its packages are not imported here.
	var rejected interface {
		error
		Status() *status.Status
	}
	if filter != "" && errors.As(err, &rejected) && rejected.Status().Code() == codes.InvalidArgument {
		return usagef("%s %q: %s", flag, filter, rejected.Error())
	}
	return err
}

func (o listOptions) printTable(ctx context.Context, c contextClient) error {
	var summaries []client.Summary
	for summary, err := range c.List(ctx, o.query) {
		if err != nil {
			return explainFilter("--query", o.query, err)
		}
		summaries = append(summaries, summary)
	}
	if len(summaries) == 0 {
		o.note("no contexts")
		return nil
	}
	return printContexts(o.out, summaries)
}

func printContexts(w io.Writer, summaries []client.Summary) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTEXT\tSTATUS\tTURNS\tSTARTED\tMODEL")
	for _, s := range summaries {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n",
			terminal.Line(s.ContextName), terminal.Line(string(s.Status)), s.Turns, s.StartedAt.Local().Format(time.DateTime), terminal.Line(s.Model))
	}
	return table.Flush()
}
