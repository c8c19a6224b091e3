package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetCompactionCommand(o *setOptions) *cobra.Command {
	var body event.SetCompaction
	var isOff bool
	strategies := words(event.Strategy("").Values())
	command := &cobra.Command{
		Use:   "compaction [STRATEGY...] -n NAME [flags]",
		Short: "Set how a conversation is shortened to fit the context window",
		Long: `Set how the messages for the model are shortened when a request fills more than
--trigger percent of the context window, or the provider rejects it as too long.
The log keeps all events; "starter state" shows what the model receives. The
strategies are tried in order:

` + effectsUsage[event.Strategy]() + `
The command sets all fields. Without strategies, they are drop_tool_results and
summarise, as in new contexts; --reset returns to the settings of new contexts.`,
		Example: `  starter set compaction drop_tool_results truncate -n demo --trigger 90
  starter set compaction -n demo --off`,
		ValidArgs: strategies,
		RunE: func(command *cobra.Command, args []string) error {
			for _, arg := range args {
				if !slices.Contains(strategies, arg) {
					return usagef("STRATEGY %q: want %s", arg, oneOf(strategies))
				}
				body.Strategies = append(body.Strategies, event.Strategy(arg))
			}
			if isOff && len(args) > 0 {
				return usagef("--off: cannot be used with strategies")
			}
			if isOff && (body.TriggerPercent != nil || body.TargetPercent != nil) {
				return usagef("--off: cannot be used with --trigger or --target")
			}
			if isOff {
				body.Strategies = []event.Strategy{}
			}
			return runSet(command.Context(), *o, body)
		},
	}
	flags := command.Flags()
	intField(flags, &body.TriggerPercent, "trigger", "80", "`PERCENT` of the window that a request may fill, 10 to 100")
	intField(flags, &body.TargetPercent, "target", "", "`PERCENT` that a compacted request fills at most, less than the trigger (default: five eighths of the trigger)")
	flags.BoolVar(&isOff, "off", false, "never shorten the conversation")
	resetFlag(command)
	return command
}
