package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetTimeoutCommand(o *setOptions) *cobra.Command {
	var firstToken, stall time.Duration
	command := &cobra.Command{
		Use:   "timeout DURATION -n NAME [flags]",
		Short: "Bound one attempt, its wait for the first token, and its silences",
		Long: `Bound one attempt, from sending the request to the end of the answer, and, if
wanted, the wait for the first token and every silence after it. An attempt that
takes longer is repeated as the retry settings say. All of it is set at once:
what is left out goes back to its default. Durations are like 45s or 2m, in
whole milliseconds, 1ms to 24h; a fresh context has 30s and no other bound.

` + exitReference,
		Example: `  starter set timeout 2m -n demo
  starter set timeout 5m -n demo --first-token 20s --stall 5s`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			timeout, err := time.ParseDuration(args[0])
			if err != nil {
				return usagef("timeout %q: want a duration like 45s or 2m", args[0])
			}
			var body event.SetTimeout
			if body.TimeoutMs, err = wholeMilliseconds("timeout", timeout); err != nil {
				return err
			}
			if body.FirstTokenMs, err = optionalMilliseconds(command, "first-token", firstToken); err != nil {
				return err
			}
			if body.StallMs, err = optionalMilliseconds(command, "stall", stall); err != nil {
				return err
			}
			return runSet(command.Context(), *o, body)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&firstToken, "first-token", 0,
		"longest wait for the first token, while the request queues; at least 1ms, at most DURATION (default: DURATION)")
	flags.DurationVar(&stall, "stall", 0,
		"longest silence after the first token; at least 1ms, at most DURATION (default: DURATION)")
	return command
}
