package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetPolicyCommand(o *setOptions) *cobra.Command {
	var quietPeriod, maxWait time.Duration
	var names []string
	for _, policy := range event.Policies() {
		names = append(names, string(policy))
	}
	command := &cobra.Command{
		Use:   "policy [interrupt|queue|reject] -n NAME [flags]",
		Short: "Set the delivery policy: the effect of new input on a running answer",
		Long: `Set the delivery policy, which decides what new input does to a running answer,
and how long input is debounced before a request is sent. Omitted values stay
unchanged.

  interrupt  stop the answer, keep its text, and answer again (the default)
  queue      finish the answer, then answer the new input
  reject     reject the input

Durations have a unit, as in 10ms or 1s, and are whole milliseconds.

` + exitReference,
		Example: `  starter set policy queue -n demo
  starter set policy -n demo --quiet-period 300ms --max-wait 2s`,
		Args:      atMostOneArgument,
		ValidArgs: names,
		RunE: func(command *cobra.Command, args []string) error {
			var body event.SetDeliveryPolicy
			if len(args) > 0 {
				if !slices.Contains(command.ValidArgs, args[0]) {
					return usagef("policy %q: want interrupt, queue or reject", args[0])
				}
				body.Policy = event.Policy(args[0])
			} else if !command.Flags().Changed("quiet-period") && !command.Flags().Changed("max-wait") {
				return usagef("policy: missing (want interrupt, queue or reject, or --quiet-period or --max-wait)")
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
		"time without new input before a request is sent, 0s (at once) to 1m (new contexts: 10ms)")
	flags.DurationVar(&maxWait, "max-wait", 0,
		"maximum wait while input keeps arriving, 0s to 1m (new contexts: 500ms)")
	return command
}
