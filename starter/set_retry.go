package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetRetryCommand(o *setOptions) *cobra.Command {
	var body event.SetRetryConfig
	initialDelayMs := new(int64(100))
	command := &cobra.Command{
		Use:   "retry -n NAME [flags]",
		Short: "Set the number and the delays of retries",
		Long: `Set the number of retries after a failed attempt, per provider, and their delays.
The command sets all fields; omitted flags return to their defaults, with --reset
all of them. Durations have a unit, as in 100ms, 2s or 1m30s, and are whole
milliseconds.`,
		Example: `  starter set retry -n demo --max-retries 5 --initial-delay 500ms --jitter`,
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			body.InitialDelayMs = *initialDelayMs
			return runSet(command.Context(), *o, body)
		},
	}
	flags := command.Flags()
	flags.IntVar(&body.MaxRetries, "max-retries", 3, "number of retries, 0 to 100; 0: a single attempt")
	millisecondsField(flags, &initialDelayMs, "initial-delay", "100ms", "delay before the first retry, 1ms to 1h")
	floatField(flags, &body.BackoffFactor, "backoff-factor", "2", "factor from each delay to the next, 1 to 100; 1: constant delays")
	millisecondsField(flags, &body.MaxDelayMs, "max-delay", "1m0s", "maximum delay, from the initial delay to 1h")
	flags.BoolVar(&body.Jitter, "jitter", false, "randomize each delay between half and all of it")
	resetFlag(command)
	return command
}
