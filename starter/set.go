package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type setOptions struct {
	*app
	name string
	json bool
	// check is called before the setting is sent; nil: it is not.
	check func(context.Context, conversation) error
}

func newSetCommand(a *app) *cobra.Command {
	o := &setOptions{app: a}
	command := &cobra.Command{
		Use:   "set provider|request|retry|timeout|policy|compaction|system -n NAME [flags]",
		Short: "Change the settings of a context",
		Long: `Change a setting of a context: add an event to its log, and show the event as
recorded. A setting takes effect with the next request. The context is created
if it does not exist.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("setting: missing (want provider, request, retry, timeout, policy, compaction or system)")
		},
	}
	flags := command.PersistentFlags()
	flags.StringVarP(&o.name, "name", "n", "", nameUsage)
	flags.BoolVar(&o.json, "json", false, "print the recorded event as one line of JSON")
	command.AddCommand(newSetProviderCommand(o), newSetRequestCommand(o), newSetRetryCommand(o), newSetTimeoutCommand(o),
		newSetPolicyCommand(o), newSetCompactionCommand(o), newSetSystemCommand(o))
	return command
}

func runSet(ctx context.Context, o setOptions, body event.Body) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	setting, err := input(body)
	if err != nil {
		return nameFlags(err)
	}
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if o.check != nil {
		if err := o.check(ctx, to); err != nil {
			return err
		}
	}
	recorded, err := o.set(ctx, to, setting)
	if err != nil {
		return err
	}
	if isFirst(recorded) {
		o.note("created context %s", o.name)
	}
	return o.printEvent(recorded, o.json)
}

func (a *app) set(ctx context.Context, to conversation, setting event.Event) (event.Event, error) {
	for e, err := range a.turn(ctx, to, []event.Event{setting}) {
		if err != nil {
			return event.Event{}, err
		}
		switch e.Tag() {
		case event.TagInputRejected:
			return event.Event{}, turnError(e.Body)
		case setting.Tag():
			return e, nil
		}
	}
	return event.Event{}, turnError(nil)
}

// resetFlag adds the flag that a command requires if no setting is named, because it resets those that are not.
func resetFlag(command *cobra.Command) {
	reset := command.Flags().Bool("reset", false, "return all settings of the command to their defaults")
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		named := len(args)
		command.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Changed && f.Name != "reset" {
				named++
			}
		})
		switch {
		case *reset && named > 0:
			return usagef("--reset: cannot be used with a setting")
		case !*reset && named == 0:
			return usagef("setting: missing (want a flag, or --reset for the defaults)")
		}
		return run(command, args)
	}
}

// flagsOf maps fields of events to flags or arguments whose names differ.
var flagsOf = map[string]string{
	"providerId": "--provider", "useDefault": "--default", "timeoutMs": "DURATION", "policy": "policy", "content": "TEXT",
	"parameters": "--arguments", "decidedBy": "--by", "strategies": "STRATEGY", "triggerPercent": "--trigger", "targetPercent": "--target",
	"labels": "--label", "responseFormat.schema": "--response-schema", "responseFormat.name": "--schema-name",
}

func nameFlags(err error) error {
	var field *event.FieldError
	if !errors.As(err, &field) || field.Field == "" {
		return err
	}
	flag, ok := flagsOf[field.Field]
	problem := field.Problem
	if !ok {
		name, inner, isNested := strings.Cut(field.Field, ".")
		if isNested && (name == "tools" || name == "approve") { // several flags set them
			return usagef("%s: %s", field.Field, problem)
		}
		if isNested {
			problem = inner + ": " + problem
		}
		flag = "--" + camelHump.ReplaceAllStringFunc(strings.TrimSuffix(name, "Ms"), func(hump string) string {
			return "-" + strings.ToLower(hump)
		})
	}
	switch {
	case problem == "empty":
		problem = "missing"
	case !strings.HasSuffix(field.Field, "Ms"):
	case field.Range != nil:
		r := field.Range
		return usagef("%s %s: out of range (%s to %s)", flag, milliseconds(r.Got), milliseconds(r.Low), milliseconds(r.High))
	default:
		problem += " (milliseconds)"
	}
	return usagef("%s: %s", flag, problem)
}

// effectsUsage lists the values of a type and their effects for the help of a command.
func effectsUsage[T interface {
	~string
	Values() []T
	Effect() string
}]() string {
	values, width := T("").Values(), 0
	for _, v := range values {
		width = max(width, len(v)+1)
	}
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "  %-*s %s\n", width, v, v.Effect())
	}
	return b.String()
}

// milliseconds formats like the help: 24h, not 24h0m0s.
func milliseconds(ms int64) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, unit) {
			text = text[:len(text)-2]
		}
	}
	return text
}

var camelHump = regexp.MustCompile(`[A-Z]`)

// isFirst reports whether an event is the first that a client sent to its context; only
// SessionStarted may precede it.
func isFirst(e event.Event) bool { return event.Counter(e.ID) <= 2 }
