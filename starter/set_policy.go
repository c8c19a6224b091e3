package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetPolicyCommand(o *setOptions) *cobra.Command {
	var quietPeriod, maxWait time.Duration
	command := &cobra.Command{
		Use:   "policy [interrupt|queue|reject] -n NAME [flags]",
		Short: "Set what new input does to a running answer",
		Long: `Set what new input does to a running answer, and how long a request waits for
more input before it is sent. What is left out stays as it is.

  interrupt  stop the answer, keep what was said, and answer anew; as a fresh context does
  queue      let the answer end, then answer what is new
  reject     refuse the input

Durations are like 10ms or 1s, in whole milliseconds.

` + exitReference,
		Example: `  starter set policy queue -n demo
  starter set policy -n demo --quiet-period 300ms --max-wait 2s`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{string(event.PolicyInterrupt), string(event.PolicyQueue), string(event.PolicyReject)},
		RunE: func(command *cobra.Command, args []string) error {
			var body event.SetDeliveryPolicy
			if len(args) > 0 {
				body.Policy = event.Policy(args[0])
			}
			var err error
			if body.QuietPeriodMs, err = optionalMilliseconds(command, "quiet-period", quietPeriod); err != nil {
				return err
			}
			if body.MaxWaitMs, err = optionalMilliseconds(command, "max-wait", maxWait); err != nil {
				return err
			}
			return runSet(command.Context(), *o, body)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&quietPeriod, "quiet-period", 0,
		"time without new input before a request is sent, 0s to 1m; 0s: at once (a fresh context has 10ms)")
	flags.DurationVar(&maxWait, "max-wait", 0,
		"longest wait when input keeps coming, 0s to 1m (a fresh context has 500ms)")
	return command
}
