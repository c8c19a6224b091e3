package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/reducer/usage"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type usageOptions struct {
	*app
	name    string
	isNamed bool
	by      string
	json    bool
}

func newUsageCommand(a *app) *cobra.Command {
	o := usageOptions{app: a}
	command := &cobra.Command{
		Use:   "usage [-n NAME] [--by context|model|day] [flags]",
		Short: "Sum up tokens and costs",
		Long: `Sum up the tokens and the cost of all attempts that were sent to providers,
including failed and interrupted ones, from the log of a context or of all
contexts. No worker is needed.

A ~ marks sums with tokens that a worker counted because the provider reported
none. Costs use the operator's prices at the end of each attempt; a + means that
the price of some attempts is unknown. Days are in UTC. The usage of a fork starts
at the fork. The attempts in an imported log are counted again.`,
		Example: `  starter usage -n demo
  starter usage --by model
  starter usage --by day --json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			o.isNamed = command.Flags().Changed("name")
			return runUsage(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", "`NAME` of the context"+nameRule+" (default: all contexts)")
	command.Flags().StringVar(&o.by, "by", "context", "group rows by `context|model|day`")
	command.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	return command
}

func runUsage(ctx context.Context, o usageOptions) error {
	by := usage.By(o.by)
	if !slices.Contains([]usage.By{usage.ByContext, usage.ByModel, usage.ByDay}, by) {
		return usagef("--by %q: want context, model or day", o.by)
	}
	if o.isNamed {
		if err := checkName(o.name); err != nil {
			return err
		}
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	table := usage.New(by)
	names := []string{o.name}
	if !o.isNamed {
		if names, err = contextNames(ctx, c); err != nil {
			return err
		}
	}
	var unreadable []error
	for _, name := range names {
		var log []event.Event
		of, err := c.Open(name)
		if err == nil {
			log, err = readLog(ctx, of)
		}
		if err != nil {
			// Continue with the other contexts.
			unreadable = append(unreadable, fmt.Errorf("sum up the usage of context %s: %w", name, err))
			continue
		}
		for _, e := range log {
			e.ContextName = name // with the tenant
			table.Add(e)
		}
	}
	if n := len(unreadable); n > 0 && n == len(names) {
		return errors.Join(unreadable...)
	}
	if !o.json {
		return errors.Join(append(unreadable, o.printTable(table, by))...)
	}
	for _, row := range table.Rows() {
		if err := o.printJSON(row); err != nil {
			return err
		}
	}
	return errors.Join(unreadable...)
}

func contextNames(ctx context.Context, c contextClient) (names []string, err error) {
	for summary, err := range c.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		names = append(names, summary.ContextName)
	}
	return names, nil
}

func (o usageOptions) printTable(sums *usage.Table, by usage.By) error {
	rows := sums.Rows()
	if len(rows) == 0 {
		o.note("no attempts")
		return nil
	}
	table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	heads := map[usage.By]string{usage.ByContext: "CONTEXT", usage.ByModel: "PROVIDER\tMODEL", usage.ByDay: "DAY"}
	fmt.Fprintln(table, heads[by]+"\tATTEMPTS\tINPUT\tCACHED\tOUTPUT\tREASONING\tCOST")
	line := func(head string, u reducer.Usage) {
		mark := ""
		if u.Estimated {
			mark = "~"
		}
		cost := "unknown"
		if known := show.Cost(u); known != "" {
			cost = mark + known
		}
		fmt.Fprintf(table, "%s\t%d\t%s%d\t%d\t%s%d\t%d\t%s\n",
			head, u.Attempts, mark, u.InputTokens, u.CachedTokens, mark, u.OutputTokens, u.ReasoningTokens, cost)
	}
	for _, row := range rows {
		head := terminal.Line(row.ContextName + row.Day)
		if by == usage.ByModel {
			head = terminal.Line(row.ProviderID) + "\t" + terminal.Line(row.Model)
		}
		line(head, row.Usage)
	}
	if len(rows) > 1 {
		head := "total"
		if by == usage.ByModel {
			head += "\t"
		}
		line(head, sums.Total())
	}
	return table.Flush()
}
