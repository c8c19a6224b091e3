package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

type forkOptions struct {
	*app
	name string
	client.BranchOptions
	provider event.SetProviderConfig
	json     bool
}

func newForkCommand(a *app) *cobra.Command {
	o := forkOptions{app: a}
	command := &cobra.Command{
		Use:   "fork -n NAME --at EVENT_ID | --before EVENT_ID | --regenerate EVENT_ID [flags]",
		Short: "Fork a context at an event, or ask again for an answer",
		Long: `Create a context whose log starts with the log of another context, up to an
event. Afterwards the two contexts are independent. The log is not copied: the
new context refers to the archive of the other one, so --blob-url must name the
blob store of the workers.

In the new context, an answer that was running at the event is interrupted, and
no tool is called again. With --regenerate, the new context begins before the
attempt to give an answer, with the results of tools, and requests another
answer, with --provider and --model from another model.

An event that the context shares with its own origin, or that precedes its first
message, is one of that origin, which the new context is then forked from.`,
		Example: `  starter fork -n demo --at demo:0012 --as demo-2
  starter fork -n demo --before demo:0007   # then send the message in other words
  starter fork -n demo --regenerate demo:0009 --provider openai --model gpt-4o`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runFork(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.At, "at", "", "`ID` of the last event that both contexts share, like demo:0012")
	flags.StringVar(&o.Before, "before", "", "`ID` of the first event that they do not share, such as a message")
	flags.StringVar(&o.Regenerate, "regenerate", "", "`ID` of an answer to ask for again, an AssistantMessageEvent")
	flags.StringVar(&o.Name, "as", "", "`NAME` of the new context (default: generated, like demo-2)")
	flags.StringVar(&o.provider.ProviderID, "provider", "", "`ID` of the provider of the new context, as of \"set provider\" (default: that of the context)")
	flags.StringVar(&o.provider.Model, "model", "", "`MODEL` of the new context; requires --provider (default: that of the context)")
	flags.BoolVar(&o.json, "json", false, "print one line of JSON: contextName, forkedFrom, receipt")
	return command
}

func runFork(ctx context.Context, o forkOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.provider.ProviderID != "" || o.provider.Model != "" {
		set, err := input(o.provider)
		if err != nil {
			return nameFlags(err)
		}
		o.Events = []event.Event{set}
	}
	from, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	created, err := from.Branch(ctx, o.BranchOptions)
	if errors.Is(err, client.ErrNoEvent) {
		if missing := o.findPoint(ctx, from); missing != nil {
			return missing
		}
		return fmt.Errorf("%w (list the events with \"%s events -n %s\")", err, o.program(), o.name)
	}
	if err != nil && created.ContextName != "" {
		return fmt.Errorf("created context %s: %w", created.ContextName, err)
	}
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(created)
	}
	o.note("created context %s, forked from %s", created.ContextName, created.ForkedFrom)
	return nil
}

type forkPoint struct{ flag, id string }

// points returns the flags of which one is set.
func (o forkOptions) points() []forkPoint {
	return []forkPoint{{"--at", o.At}, {"--before", o.Before}, {"--regenerate", o.Regenerate}}
}

// findPoint fails if the log lacks the event of the fork. Other errors are those of the fork.
func (o forkOptions) findPoint(ctx context.Context, from conversation) error {
	for _, p := range o.points() {
		if p.id == "" {
			continue
		}
		if err := findEvent(ctx, from.Events, p.flag, o.name, p.id); errors.Is(err, errNotInLog) {
			return err
		}
	}
	return nil
}

func (o forkOptions) check() error {
	points := 0
	for _, p := range o.points() {
		if p.id == "" {
			continue
		}
		points++
		if err := o.checkEventID(p.flag, o.name, p.id); err != nil {
			return err
		}
	}
	if points != 1 {
		return usagef("want one of --at, --before and --regenerate")
	}
	if o.Name == "" {
		return nil
	}
	return checkNewName(o.name, o.Name)
}

// checkEventID checks the id of an event of the context in a flag.
func (a *app) checkEventID(flag, name, id string) error {
	if n := event.Counter(id); n == 0 || id != event.FormatID(name, n) {
		return usagef("%s %q: want the id of an event of this context, like %s (list them with \"%s events -n %s\")",
			flag, id, event.FormatID(name, 1), a.program(), name)
	}
	return nil
}

func checkNewName(name, as string) error {
	if as == "" || as == name {
		return usagef("--as %q: want the name of a new context", as)
	}
	if err := event.ValidateContextName(as); err != nil {
		return usagef("--as: %w", err)
	}
	tenant, _ := event.CutTenant(name)
	if other, _ := event.CutTenant(as); other != tenant {
		return usagef("--as %q: a fork stays in the tenant of its origin (want a name like %s)", as, event.JoinTenant(tenant, "copy"))
	}
	return nil
}
