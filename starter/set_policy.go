package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetPolicyCommand(o *setOptions) *cobra.Command {
	var body event.SetDeliveryPolicy
	policies := words(event.Policy("").Values())
	wanted := oneOf(policies)
	command := &cobra.Command{
		Use:   "policy [" + strings.Join(policies, "|") + "] -n NAME [flags]",
		Short: "Set the delivery policy: the effect of new input on a running answer",
		Long: `Set the delivery policy, which decides what new input does to a running answer,
and how long input is debounced before a request is sent. Omitted values stay
unchanged.

` + effectsUsage[event.Policy]() + `
Durations have a unit, as in 10ms or 1s, and are whole milliseconds.`,
		Example: `  starter set policy queue -n demo
  starter set policy -n demo --quiet-period 300ms --max-wait 2s`,
		Args:      atMostOneArgument,
		ValidArgs: policies,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				if !slices.Contains(command.ValidArgs, args[0]) {
					return usagef("policy %q: want %s", args[0], wanted)
				}
				body.Policy = event.Policy(args[0])
			} else if body.QuietPeriodMs == nil && body.MaxWaitMs == nil {
				return usagef("policy: missing (want %s, or --quiet-period or --max-wait)", wanted)
			}
			return runSet(command.Context(), *o, body)
		},
	}
	flags := command.Flags()
	millisecondsField(flags, &body.QuietPeriodMs, "quiet-period", "",
		"time without new input before a request is sent, 0s (at once) to 1m (new contexts: 10ms)")
	millisecondsField(flags, &body.MaxWaitMs, "max-wait", "",
		"maximum wait while input keeps arriving, 0s to 1m (new contexts: 500ms)")
	return command
}
