package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

type listOptions struct {
	*app
	query    string
	archived bool
	json     bool
}

func newListCommand(a *app) *cobra.Command {
	o := listOptions{app: a}
	command := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the contexts by last activity",
		Long: `List the contexts of the namespace that Temporal lists, by last activity: the
newest first, without archived ones. The list is eventually consistent: changes
appear after about a second.`,
		Example: `  starter list --query 'ContextStatus = "waiting"'
  starter list --query 'ContextTurns > 10' --json
  starter list --archived`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runList(command.Context(), o) },
	}
	command.Flags().StringVar(&o.query, "query", "",
		"Temporal list `FILTER`; it may use ContextStatus, ContextTurns, ContextModel, ContextTitle and ContextLabels (default: all contexts)")
	command.Flags().BoolVar(&o.archived, "archived", false, "list the archived contexts instead of the others")
	command.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	return command
}

// activeContext is a context in the list.
type activeContext struct {
	client.Summary
	Archived     bool      `json:"archived,omitempty"`
	LastActiveAt time.Time `json:"lastActiveAt"`
}

func runList(ctx context.Context, o listOptions) error {
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	contexts, err := activeContexts(ctx, c, o.query, o.archived)
	if err != nil {
		return explainFilter("--query", o.query, err)
	}
	if o.json {
		for _, c := range contexts {
			if err := o.printJSON(c); err != nil {
				return err
			}
		}
		return nil
	}
	if len(contexts) == 0 {
		o.note("no contexts")
		return nil
	}
	return printContexts(o.out, contexts)
}

// listReaders is the number of contexts that are looked up at once.
const listReaders = 16

// activeContexts returns the contexts that match a filter, by last activity: the archived ones, or the others.
func activeContexts(ctx context.Context, c contextClient, query string, archived bool) (contexts []activeContext, err error) {
	for s, err := range c.List(ctx, query) {
		if err != nil {
			return nil, err
		}
		contexts = append(contexts, activeContext{Summary: s, LastActiveAt: s.StartedAt})
	}
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(listReaders)
	for i := range contexts {
		group.Go(func() error {
			activity, err := c.Activity(reading, contexts[i].Summary)
			if errors.Is(err, client.ErrNoContext) {
				return nil // it was deleted in the meantime
			}
			contexts[i].LastActiveAt, contexts[i].Archived = activity.At, activity.Archived
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	contexts = slices.DeleteFunc(contexts, func(c activeContext) bool { return c.Archived != archived })
	slices.SortFunc(contexts, func(a, b activeContext) int {
		return cmp.Or(b.LastActiveAt.Compare(a.LastActiveAt), cmp.Compare(a.ContextName, b.ContextName))
	})
	return contexts, nil
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

func printContexts(w io.Writer, contexts []activeContext) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTEXT\tSTATUS\tTURNS\tACTIVE\tMODEL\tTITLE")
	for _, c := range contexts {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n",
			terminal.Line(c.ContextName), terminal.Line(string(c.Status)), c.Turns, c.LastActiveAt.Local().Format(time.DateTime),
			terminal.Line(c.Model), terminal.Line(c.Title))
	}
	return table.Flush()
}
