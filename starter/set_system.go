package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetSystemCommand(o *setOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "system TEXT -n NAME",
		Short: "Set the system prompt, which tells the model how to answer",
		Long: `Set the system prompt, which tells the model how to answer. It takes the place of
the one before; an empty TEXT removes it.

` + exitReference,
		Example: `  starter set system "Answer in one sentence." -n demo
  starter set system "" -n demo`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runSet(command.Context(), *o, event.SystemPrompt{Content: args[0]})
		},
	}
}
