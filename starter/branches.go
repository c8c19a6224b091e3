package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type branchesOptions struct {
	*app
	name    string
	compare string
	json    bool
}

func newBranchesCommand(a *app) *cobra.Command {
	o := branchesOptions{app: a}
	command := &cobra.Command{
		Use:   "branches -n NAME",
		Short: "List the forks of a conversation, or compare two of them",
		Long: `List the contexts that are related to a context by forks: the root, below each
context its forks, the newest first, with the last event that they share, and
their titles, or else the beginnings of their first messages. The list is read
from the blob store of the workers, which --blob-url must name.

With --compare, print side by side what follows the events that two contexts
share.`,
		Example: `  starter branches -n demo
  starter branches -n demo --compare demo-2
  starter details -n demo-2 --title "Shorter answers"   # name a branch`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runBranches(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().StringVar(&o.compare, "compare", "", "`NAME` of another context to compare with")
	command.Flags().BoolVar(&o.json, "json", false, "print one line of JSON: contexts, choices, incomplete; with --compare: after, contexts")
	return command
}

func runBranches(ctx context.Context, o branchesOptions) error {
	if o.compare != "" {
		if err := event.ValidateContextName(o.compare); err != nil {
			return usagef("--compare: %w", err)
		}
		return runCompare(ctx, o)
	}
	c, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	branches, err := c.Branches(ctx)
	if err != nil {
		return err
	}
	if branches.Incomplete {
		o.note("there are more contexts")
	}
	if o.json {
		return o.printJSON(branches)
	}
	return printBranches(o.out, branches.Contexts)
}

const maxTitle = 60 // characters

func printBranches(w io.Writer, branches []client.Branch) error {
	forks := map[string][]client.Branch{} // by the name of the origin without the tenant, which ids of events omit
	for _, b := range branches[1:] {
		origin, _, _ := strings.Cut(b.ForkedFrom, ":")
		forks[origin] = append(forks[origin], b)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTEXT\tFORKED FROM\tCREATED\tTITLE")
	var printBelow func(b client.Branch, depth int)
	printBelow = func(b client.Branch, depth int) {
		created := ""
		if !b.CreatedAt.IsZero() {
			created = b.CreatedAt.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s%s\t%s\t%s\t%s\n", strings.Repeat("  ", depth), terminal.Line(b.ContextName), terminal.Line(b.ForkedFrom), created,
			show.Excerpt(cmp.Or(b.Title, b.Preview), maxTitle))
		_, local := event.CutTenant(b.ContextName)
		for _, fork := range forks[local] {
			printBelow(fork, depth+1)
		}
	}
	printBelow(branches[0], 0)
	return table.Flush()
}
