package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetSystemCommand(o *setOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "system TEXT -n NAME",
		Short: "Set or remove the system prompt",
		Long: `Set the system prompt, which tells the model how to answer. TEXT replaces the
previous prompt; an empty TEXT removes it.`,
		Example: `  starter set system "Answer in one sentence." -n demo
  starter set system "" -n demo`,
		Args: oneArgument("TEXT"),
		RunE: func(command *cobra.Command, args []string) error {
			return runSet(command.Context(), *o, event.SystemPrompt{Content: args[0]})
		},
	}
}
