package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type resultOptions struct {
	*app
	name    string
	isError bool
	json    bool
}

func newResultCommand(a *app) *cobra.Command {
	o := resultOptions{app: a}
	command := &cobra.Command{
		Use:   "result -n NAME CALL JSON|@FILE|- [flags]",
		Short: "Send the result of a client's tool call",
		Long: `Send the result of the tool call with the id CALL. The tool must be one that a
client declared, see "starter tools". The turn of the context then continues. The
result is JSON: an argument, a file with @FILE, or standard input with -. No
worker is needed.`,
		Example: `  starter result -n demo call_1 '{"answer":"yes"}'
  starter result -n demo call_1 '"The user is away."' --error
  jq -c . rows.json | starter result -n demo call_1 -`,
		Args: func(command *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("CALL: missing")
			case len(args) == 1:
				return usagef("JSON: missing (want the result, @FILE, or - for standard input)")
			}
			return noArguments(command, args[2:])
		},
		RunE: func(command *cobra.Command, args []string) error {
			return runResult(command.Context(), o, args[0], args[1])
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.BoolVar(&o.isError, "error", false, "the tool failed: the JSON is its error")
	flags.BoolVar(&o.json, "json", false, "print the recorded event as one line of JSON")
	return command
}

func runResult(ctx context.Context, o resultOptions, call, text string) error {
	value, err := o.readValue("JSON", `a value like '{"answer":"yes"}', or a text in quotes like '"done"'`, text)
	if err != nil {
		return err
	}
	body := event.ToolResult{ToolCallID: call, Value: value}
	if o.isError {
		body = event.ToolResult{ToolCallID: call, Error: value, IsError: true}
	}
	result, err := input(body)
	if err != nil {
		return err
	}
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if _, err := waitingCalls(ctx, to, reducer.CallClient, call); err != nil {
		return err
	}
	recorded, err := o.record(ctx, to, []event.Event{result})
	if err != nil {
		return err
	}
	return o.printEvent(recorded[0], o.json)
}
