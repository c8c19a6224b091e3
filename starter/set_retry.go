package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetRetryCommand(o *setOptions) *cobra.Command {
	var body event.SetRetryConfig
	var initialDelay, maxDelay time.Duration
	var backoffFactor float64
	command := &cobra.Command{
		Use:   "retry -n NAME [flags]",
		Short: "Set the number and the delays of retries",
		Long: `Set the number of retries after a failed attempt, per provider, and their delays.
The command sets all fields; omitted flags return to their defaults, with --reset
all of them. Durations have a unit, as in 100ms, 2s or 1m30s, and are whole
milliseconds.

` + exitReference,
		Example: `  starter set retry -n demo --max-retries 5 --initial-delay 500ms --jitter`,
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			var err error
			if body.InitialDelayMs, err = wholeMilliseconds("--initial-delay", initialDelay); err != nil {
				return err
			}
			if body.MaxDelayMs, err = optionalMilliseconds(command, "max-delay", maxDelay); err != nil {
				return err
			}
			if command.Flags().Changed("backoff-factor") {
				body.BackoffFactor = &backoffFactor
			}
			return runSet(command.Context(), *o, body)
		},
	}
	flags := command.Flags()
	flags.IntVar(&body.MaxRetries, "max-retries", 3, "number of retries, 0 to 100; 0: a single attempt")
	flags.DurationVar(&initialDelay, "initial-delay", 100*time.Millisecond, "delay before the first retry, 1ms to 1h")
	flags.Float64Var(&backoffFactor, "backoff-factor", 2, "factor from each delay to the next, 1 to 100; 1: constant delays")
	flags.DurationVar(&maxDelay, "max-delay", time.Minute, "maximum delay, from the initial delay to 1h")
	flags.BoolVar(&body.Jitter, "jitter", false, "randomize each delay between half and all of it")
	resetFlag(command)
	return command
}
