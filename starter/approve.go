package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type decideOptions struct {
	*app
	name      string
	decision  event.Decision
	reason    string
	arguments string
	by        string
	json      bool
}

func newApproveCommand(a *app) *cobra.Command {
	o := decideOptions{app: a, decision: event.Approve}
	command := &cobra.Command{
		Use:   "approve -n NAME [CALL] [flags]",
		Short: "Approve tool calls that wait for an approval",
		Long: `Approve the tool call with the id CALL, or all calls that wait for an approval,
and show what was approved. The turn of the context then continues. No worker is
needed.

With --arguments, the call is made with these arguments instead of those of the
model.`,
		Example: `  starter approve -n demo
  starter approve -n demo call_1 --arguments '{"path":"notes.txt"}'`,
		Args: atMostOneArgument,
		RunE: func(command *cobra.Command, args []string) error { return runDecide(command.Context(), o, args) },
	}
	command.Flags().StringVar(&o.arguments, "arguments", "", "call the tool with these arguments: a `JSON` object, @FILE, or - for standard input")
	o.addFlags(command)
	return command
}

func newDenyCommand(a *app) *cobra.Command {
	o := decideOptions{app: a, decision: event.Deny}
	command := &cobra.Command{
		Use:   "deny -n NAME [CALL] [flags]",
		Short: "Deny tool calls that wait for an approval",
		Long: `Deny the tool call with the id CALL, or all calls that wait for an approval, and
show what was denied. The model receives the denial with its reason as the result
of the call. No worker is needed.`,
		Example: `  starter deny -n demo
  starter deny -n demo call_1 --reason "Ask the owner first."`,
		Args: atMostOneArgument,
		RunE: func(command *cobra.Command, args []string) error { return runDecide(command.Context(), o, args) },
	}
	o.addFlags(command)
	return command
}

func (o *decideOptions) addFlags(command *cobra.Command) {
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.reason, "reason", "", "reason `TEXT` for the log and, after a denial, for the model")
	flags.StringVar(&o.by, "by", "", "`NAME` of the person who decides, for the log (default: $USER)")
	flags.BoolVar(&o.json, "json", false, "print the recorded events, one JSON object per line")
}

func runDecide(ctx context.Context, o decideOptions, args []string) error {
	id := ""
	if len(args) > 0 {
		id = args[0]
	}
	body := event.ApprovalDecided{Decision: o.decision, Reason: o.reason, DecidedBy: o.by}
	if body.DecidedBy == "" {
		body.DecidedBy = os.Getenv("USER")
	}
	if o.arguments != "" {
		var err error
		if body.Parameters, err = o.readValue("--arguments", `an object like '{"path":"notes.txt"}'`, o.arguments); err != nil {
			return err
		}
	}
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	calls, err := waitingCalls(ctx, to, reducer.CallApproval, id)
	if err != nil {
		return err
	}
	if len(body.Parameters) > 0 && len(calls) > 1 {
		return usagef("--arguments: %d calls wait for an approval (name one: %s)", len(calls), idsOf(calls))
	}
	// Each call is named, so that only calls that the command prints are approved.
	var events []event.Event
	for _, call := range calls {
		body.ToolCallID = call.ID
		decision, err := input(body)
		if err != nil {
			return nameFlags(err)
		}
		events = append(events, decision)
	}
	recorded, err := o.record(ctx, to, events)
	if err != nil {
		return err
	}
	for i, e := range recorded {
		if o.json {
			err = o.printJSON(e)
		} else {
			_, err = fmt.Fprintln(o.out, decided(o.decision, calls[i], body.Parameters))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decided describes a decision in full, so that the user can check what was approved.
func decided(decision event.Decision, call reducer.Call, edited []byte) string {
	word := "approved"
	if decision == event.Deny {
		word = "denied"
	}
	arguments := call.Arguments
	if len(edited) > 0 {
		arguments = edited
	}
	return terminal.Line(fmt.Sprintf("%s: %s %s (%s)", word, call.Name, arguments, call.ID))
}
