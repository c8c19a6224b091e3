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
		Short: "Set how often and how fast a failed attempt is repeated",
		Long: `Set how often and how fast a failed attempt is repeated, per provider. All of it
is set at once: what is left out goes back to its default. Durations are like
100ms, 2s or 1m30s, in whole milliseconds.

` + exitReference,
		Example: `  starter set retry -n demo --max-retries 5 --initial-delay 500ms --jitter`,
		Args:    cobra.NoArgs,
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
	flags.IntVar(&body.MaxRetries, "max-retries", 3, "attempts after the first, 0 to 100; 0: a single attempt")
	flags.DurationVar(&initialDelay, "initial-delay", 100*time.Millisecond, "wait before the first retry, 1ms to 1h")
	flags.Float64Var(&backoffFactor, "backoff-factor", 2, "each wait is this many times the one before, 1 to 100; 1: all alike")
	flags.DurationVar(&maxDelay, "max-delay", time.Minute, "longest wait, from the initial delay to 1h")
	flags.BoolVar(&body.Jitter, "jitter", false, "spread each wait over its upper half")
	return command
}
