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
	at   string
	as   string
	json bool
}

func newForkCommand(a *app) *cobra.Command {
	o := forkOptions{app: a}
	command := &cobra.Command{
		Use:   "fork -n NAME --at EVENT_ID --as NEW",
		Short: "Fork a context at an event",
		Long: `Create a context whose log starts with the log of another context, up to an
event. Afterwards the two contexts are independent. The log is not copied: the
new context refers to the archive of the other one, so --blob-url must name the
blob store of the workers.

In the new context, an answer that was running at the event is interrupted.`,
		Example: `  starter fork -n demo --at demo:0012 --as demo-2`,
		Args:    noArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return runFork(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.at, "at", "", "`ID` of the last event that both contexts share, like demo:0012; required")
	flags.StringVar(&o.as, "as", "", "`NAME` of the new context; required")
	flags.BoolVar(&o.json, "json", false, "print one line of JSON: contextName, forkedFrom")
	return command
}

type forked struct {
	ContextName string `json:"contextName"`
	ForkedFrom  string `json:"forkedFrom"`
}

func runFork(ctx context.Context, o forkOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	if err := o.checkAt(o.name, o.at); err != nil {
		return err
	}
	if err := checkNewName(o.name, o.as); err != nil {
		return err
	}
	from, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	err = from.Fork(ctx, o.at, o.as)
	if errors.Is(err, client.ErrNoEvent) {
		return fmt.Errorf("%w (list the events with \"%s events -n %s\")", err, o.program(), o.name)
	}
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(forked{o.as, o.at})
	}
	o.note("created context %s, forked from %s", o.as, o.at)
	return nil
}

func (a *app) checkAt(name, at string) error {
	if n := event.Counter(at); n == 0 || at != event.FormatID(name, n) {
		return usagef("--at %q: want the id of an event of this context, like %s (list them with \"%s events -n %s\")",
			at, event.FormatID(name, 1), a.program(), name)
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
