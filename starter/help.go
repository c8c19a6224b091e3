package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// newHelpCommand replaces the help command of cobra, which succeeds for an unknown command.
func newHelpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		// Help needs no valid configuration.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(command *cobra.Command, args []string) error {
			found, rest, err := command.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("unknown command %q (list the commands with \"%s --help\")", strings.Join(args, " "), a.program())
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
