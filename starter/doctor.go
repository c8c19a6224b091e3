package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type doctorOptions struct {
	*app
	call bool
	json bool
}

func newDoctorCommand(a *app) *cobra.Command {
	o := doctorOptions{app: a}
	command := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check the deployment, and say what to fix",
		Long: `Check Temporal and its namespace, the workers, NATS, the blob store and the clocks.
A worker that polls the task queue checks its own connections, its providers and its
MCP servers, and its findings are included. Warnings and errors say why they matter
and what to do.

The command starts workflows and writes a blob, and deletes them.

The exit code is 0 if there are no errors, even if there are warnings; 1 if there are
errors; and 4 if Temporal is unreachable.`,
		Example: `  starter doctor
  starter doctor --call
  starter doctor --json | jq -r 'select(.severity == "error") | .measured'`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runDoctor(command.Context(), o) },
	}
	command.Flags().BoolVar(&o.call, "call", false, "let the worker send a request of a few tokens to each of its providers")
	command.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line, one for each finding")
	return command
}

// examine runs all checks of a client.
func examine(ctx context.Context, config client.Config, call bool) (iter.Seq[doctor.Finding], error) {
	d, err := doctor.ForClient(config)
	if err != nil {
		return nil, err
	}
	d.Call = call
	return func(yield func(doctor.Finding) bool) {
		defer d.Close()
		doctor.Run(ctx, d.Checks())(yield)
	}, nil
}

func runDoctor(ctx context.Context, o doctorOptions) error {
	run := o.examine
	if run == nil {
		run = examine
	}
	findings, err := run(ctx, o.clientConfig(), o.call)
	if err != nil {
		return err
	}
	o.grace.Store(int64(doctor.Cleanup + grace))
	counts := map[doctor.Severity]int{}
	isUnreachable := false
	for f := range findings {
		counts[f.Severity]++
		isUnreachable = isUnreachable || f.IsUnreachable()
		print := o.printFinding
		if o.json {
			print = func(f doctor.Finding) error { return o.printJSON(f) }
		}
		if err := print(f); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !o.json {
		o.note("%s", summary(counts))
	}
	switch {
	case isUnreachable:
		return client.ErrUnreachable
	case counts[doctor.Error] > 0:
		return fmt.Errorf("check the deployment: %s", show.Count(counts[doctor.Error], "error", "errors"))
	}
	return nil
}

func summary(counts map[doctor.Severity]int) string {
	return fmt.Sprintf("%d ok, %s, %s, %d skipped", counts[doctor.OK], show.Count(counts[doctor.Warning], "warning", "warnings"),
		show.Count(counts[doctor.Error], "error", "errors"), counts[doctor.Skipped])
}

// Widths of the columns. Names of providers may be longer.
const severityWidth, checkWidth = len(doctor.Skipped), len("  provider.openrouter")

func (o doctorOptions) printFinding(f doctor.Finding) error {
	style := show.Style{Color: o.color && o.outTerminal}
	paint := func(text string) string { return text }
	switch f.Severity {
	case doctor.Error:
		paint = style.Red
	case doctor.Warning:
		paint = style.Yellow
	case doctor.Skipped:
		paint = style.Dim
	}
	name := terminal.Line(f.Check)
	if f.Worker != "" {
		name = "  " + name // below workers.report, which names the worker
	}
	out := terminal.Raw(o.out)
	line := fmt.Sprintf("%s  %-*s  %s", paint(fmt.Sprintf("%-*s", severityWidth, terminal.Line(string(f.Severity)))), checkWidth, name, terminal.Line(f.Measured))
	if _, err := fmt.Fprintln(out, line); err != nil || !f.IsProblem() {
		return err
	}
	indent := strings.Repeat(" ", severityWidth+2)
	_, err := fmt.Fprintf(out, "%swhy  %s\n%[1]sfix  %[3]s\n", indent, terminal.Line(f.Why), terminal.Line(f.Fix))
	return err
}
