package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

type deleteOptions struct {
	*app
	name  string
	forks string
	yes   bool
	json  bool
}

func newDeleteCommand(a *app) *cobra.Command {
	o := deleteOptions{app: a}
	command := &cobra.Command{
		Use:   "delete -n NAME [flags]",
		Short: "Delete a context for ever, and print what was removed",
		Long: `Delete a context for ever: its session, its histories in Temporal, its schedules,
and its log, files and cursors in the blob store. The command waits for the end
and prints a receipt. Afterwards the name is free: input that arrives in the
meantime begins a new context.

Forks of the context keep what they share with it, unless --forks is "delete".

A worker deletes. Ctrl-C stops the wait, not the deletion, and the same command
waits again. It resumes a deletion that failed.`,
		Example: `  starter delete -n demo
  starter delete -n demo --forks delete --yes --json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runDelete(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.forks, "forks", string(client.KeepForks), "what happens to `FORKS` of the context: keep or delete")
	flags.BoolVar(&o.yes, "yes", false, "do not ask; required without a terminal")
	flags.BoolVar(&o.json, "json", false, "print the receipt as one line of JSON")
	return command
}

func runDelete(ctx context.Context, o deleteOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	forks := client.Forks(o.forks)
	if forks != client.KeepForks && forks != client.DeleteForks {
		return usagef("--forks %q: want keep or delete", o.forks)
	}
	if !o.yes && !(o.inTerminal && o.errTerminal) {
		return usagef("--yes: missing (required without a terminal)")
	}
	of, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if !o.yes {
		if err := o.confirm(forks); err != nil {
			return err
		}
	}
	o.note("deleting context %s: Temporal deletes histories within half a minute", o.name)
	options := client.DeleteOptions{Forks: forks}
	if o.errTerminal {
		options.Progress = o.drawProgress
	}
	receipt, err := of.Delete(ctx, options)
	if o.errTerminal {
		fmt.Fprint(terminal.Raw(o.err), "\r\x1b[K")
	}
	if receipt.ContextName == "" {
		return err
	}
	if o.json {
		return cmp.Or(err, o.printJSON(receipt))
	}
	return cmp.Or(err, o.printReceipt(receipt))
}

func (o deleteOptions) drawProgress(d client.Deletion) {
	var parts []string
	for _, r := range d.Removed {
		if r.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", r.Place, r.Count))
		}
	}
	if forks := len(d.KeptForks) + len(d.DeletedForks); forks > 0 {
		parts = append(parts, fmt.Sprintf("forks done %d", forks))
	}
	fmt.Fprintf(terminal.Raw(o.err), "\rremoved so far: %s\x1b[K", cmp.Or(strings.Join(parts, ", "), "nothing"))
}

var errNotDeleted = errors.New("nothing was deleted")

func (o deleteOptions) confirm(forks client.Forks) error {
	with := ""
	if forks == client.DeleteForks {
		with = " with all its forks"
	}
	fmt.Fprintf(o.err, "Delete context %s%s for ever? Type its name to confirm: ", o.name, with)
	line, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != o.name {
		return errNotDeleted
	}
	return nil
}

func (o deleteOptions) printReceipt(receipt client.Deletion) error {
	table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLACE\tREMOVED\tAT")
	for _, removed := range receipt.Removed {
		at := "-"
		if !removed.At.IsZero() {
			at = removed.At.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\n", removed.Place, removed.Count, at)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, fork := range receipt.KeptForks {
		o.note("fork %s has its own copy of what it shared", terminal.Line(fork))
	}
	for _, fork := range receipt.DeletedForks {
		o.note("fork %s was deleted, too", terminal.Line(fork))
	}
	for _, text := range receipt.Remains {
		o.note("remains: %s", text)
	}
	return nil
}
