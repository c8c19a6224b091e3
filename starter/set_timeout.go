package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetTimeoutCommand(o *setOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "timeout DURATION -n NAME",
		Short: "Bound one attempt, from sending the request to the end of the answer",
		Long: `Bound one attempt, from sending the request to the end of the answer. The
duration is like 45s or 2m, in whole milliseconds, 1ms to 24h; a fresh context
has 30s.

` + exitHelp,
		Example: `  starter set timeout 2m -n demo`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			timeout, err := time.ParseDuration(args[0])
			if err != nil {
				return usagef("timeout %q: want a duration like 45s or 2m", args[0])
			}
			ms, err := wholeMilliseconds("timeout", timeout)
			if err != nil {
				return err
			}
			return runSet(command.Context(), *o, event.SetTimeout{TimeoutMs: ms})
		},
	}
}
