package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetTimeoutCommand(o *setOptions) *cobra.Command {
	var body event.SetTimeout
	command := &cobra.Command{
		Use:   "timeout DURATION -n NAME [flags]",
		Short: "Set the timeouts of an attempt",
		Long: `Set the timeout of one attempt, from the end of the debounce to the end of the
answer, including hooks, without the wait for a budget, and optionally those of
the first token and of pauses after it. An attempt that times out is retried, see
"starter set retry". The command sets all fields; omitted flags return to their
defaults. DURATION has a unit, as in 45s or 2m, and is 1ms to 24h in whole
milliseconds. New contexts have a timeout of 30s and no others.`,
		Example: `  starter set timeout 2m -n demo
  starter set timeout 5m -n demo --first-token 20s --stall 5s`,
		Args: oneArgument("DURATION"),
		RunE: func(command *cobra.Command, args []string) error {
			var err error
			if body.TimeoutMs, err = parseMilliseconds(args[0]); err != nil {
				return usagef("DURATION %q: want a duration like 45s or 2m, in whole milliseconds", args[0])
			}
			return runSet(command.Context(), *o, body)
		},
	}
	flags := command.Flags()
	millisecondsField(flags, &body.FirstTokenMs, "first-token", "",
		"maximum wait for the first token, 1ms to DURATION (default: DURATION)")
	millisecondsField(flags, &body.StallMs, "stall", "",
		"maximum pause after the first token, 1ms to DURATION (default: DURATION)")
	return command
}
