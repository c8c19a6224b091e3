package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type detailsOptions struct {
	setOptions
	title, owner                 string
	labels                       []string
	noLabels, archive, unarchive bool
}

func newDetailsCommand(a *app) *cobra.Command {
	o := detailsOptions{setOptions: setOptions{app: a}}
	command := &cobra.Command{
		Use:   "details -n NAME [--title TEXT] [--label NAME=VALUE]... [--archive | --unarchive] [flags]",
		Short: "Show or set the title, labels, owner and archive mark of a context",
		Long: `Set the details by which people find a context, and show the event as recorded.
Details that are not named keep their values; --label replaces all labels. Models do
not receive details. The context is created if it does not exist.

Without a flag, show the details. A worker must be running.`,
		Example: `  starter details -n demo --title 'Plan of the trip' --label team=support
  starter details -n demo --archive
  starter details -n demo`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			body, isSet, err := o.body(command.Flags().Changed)
			switch {
			case err != nil:
				return err
			case isSet:
				return runSet(command.Context(), o.setOptions, body)
			default:
				return showDetails(command.Context(), o)
			}
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.title, "title", "", "title, a line of `TEXT` of at most 200 bytes; \"\" removes it")
	flags.StringArrayVar(&o.labels, "label", nil, "label, `NAME=VALUE`; may be repeated up to 16 times, and replaces all labels")
	flags.BoolVar(&o.noLabels, "no-labels", false, "remove all labels")
	flags.BoolVar(&o.archive, "archive", false, "hide the context from the lists of gateways until it receives a user message")
	flags.BoolVar(&o.unarchive, "unarchive", false, "show the context in these lists again")
	flags.StringVar(&o.owner, "owner", "", "owner, a `NAME`; the first one stays")
	flags.BoolVar(&o.json, "json", false, "print the details, or the recorded event, as one line of JSON")
	return command
}

func (o *detailsOptions) body(isSet func(flag string) bool) (body event.SetDetails, isAny bool, err error) {
	switch {
	case o.archive && o.unarchive:
		return body, false, usagef("--archive: cannot be used with --unarchive")
	case o.noLabels && len(o.labels) > 0:
		return body, false, usagef("--no-labels: cannot be used with --label")
	case isSet("owner") && o.owner == "":
		return body, false, usagef("--owner: missing")
	}
	if isSet("title") {
		body.Title = &o.title
	}
	if body.Labels, err = parseLabels(o.labels); err != nil {
		return body, false, err
	}
	if o.noLabels {
		body.Labels = map[string]string{}
	}
	if o.archive || o.unarchive {
		body.Archived = &o.archive
	}
	body.Owner = o.owner
	return body, body.Title != nil || body.Labels != nil || body.Archived != nil || body.Owner != "", nil
}

func showDetails(ctx context.Context, o detailsOptions) error {
	of, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	state, err := of.State(ctx)
	if err != nil {
		return err
	}
	switch d := state.Details; {
	case o.json:
		return o.printJSON(d)
	case d.Title == "" && d.Labels == nil && !d.Archived && d.Owner == "":
		o.note("context %s has no details", o.name)
		return nil
	default:
		return show.Details(o.out, d)
	}
}
