package main

import (
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
)

type branchesOptions struct {
	*app
	name string
	json bool
}

func newBranchesCommand(a *app) *cobra.Command {
	o := branchesOptions{app: a}
	command := &cobra.Command{
		Use:   "branches -n NAME",
		Short: "List the forks of a conversation",
		Long: `List the contexts that are related to a context by forks: the root, below each
context its forks, the newest first, with the last event that they share. The
list is read from the blob store of the workers, which --blob-url must name.`,
		Example: `  starter branches -n demo`,
		Args:    noArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return runBranches(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.json, "json", false, "print one line of JSON: contexts, choices, incomplete")
	return command
}

func runBranches(ctx context.Context, o branchesOptions) error {
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

func printBranches(w io.Writer, branches []client.Branch) error {
	forks := map[string][]client.Branch{} // by the name of the origin without the tenant, which ids of events omit
	for _, b := range branches[1:] {
		origin, _, _ := strings.Cut(b.ForkedFrom, ":")
		forks[origin] = append(forks[origin], b)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTEXT\tFORKED FROM\tCREATED")
	var printBelow func(b client.Branch, depth int)
	printBelow = func(b client.Branch, depth int) {
		created := ""
		if !b.CreatedAt.IsZero() {
			created = b.CreatedAt.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s%s\t%s\t%s\n", strings.Repeat("  ", depth), terminal.Line(b.ContextName), terminal.Line(b.ForkedFrom), created)
		_, local := event.CutTenant(b.ContextName)
		for _, fork := range forks[local] {
			printBelow(fork, depth+1)
		}
	}
	printBelow(branches[0], 0)
	return table.Flush()
}
