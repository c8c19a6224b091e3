package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

type scheduleOptions struct {
	*app
	name     string
	id       string
	schedule client.Schedule
	message  string
	json     bool
}

func newScheduleCommand(a *app) *cobra.Command {
	o := &scheduleOptions{app: a}
	command := &cobra.Command{
		Use:   "schedule -n NAME --cron EXPR|--every DURATION [-m TEXT] [flags]",
		Short: "Send a message repeatedly by a Temporal Schedule",
		Long: `Create a schedule that sends a message to a context at the times of a cron
expression or at an interval. A schedule with the same --id is replaced, and remains
paused if it was. Without -m the message is read from standard input. The context is
created if it does not exist; if it is closed, its next session starts.

The schedule is stored in Temporal. Sending requires a worker, but no other program.
While no worker runs, the first message waits and later ones are skipped. Messages
that are due while Temporal is down are sent up to an hour late.

A cron expression has the fields MINUTE HOUR DAY MONTH WEEKDAY [YEAR], or is
@hourly, @daily, @weekly, @monthly or @yearly.`,
		Example: `  starter schedule -n demo --cron "0 9 * * MON-FRI" --timezone Europe/Berlin -m "Plan my day."
  starter schedule -n demo --id news --every 6h -m "What is new?"
  starter schedule list -n demo
  starter schedule pause -n demo --id news`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runSchedule(command, *o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.schedule.Cron, "cron", "", "times of the messages, a cron `EXPR`")
	flags.DurationVar(&o.schedule.Every, "every", 0, "interval between messages, a `DURATION` of whole seconds, at least 1s; counted from 1970-01-01T00:00Z")
	flags.StringVar(&o.schedule.Timezone, "timezone", "", "time zone of --cron, a `NAME` like Europe/Berlin (default: UTC)")
	flags.StringVarP(&o.message, "message", "m", "", "`TEXT` of the message, at most 32 KiB of JSON; - or no flag: read standard input")
	flags.BoolVar(&o.json, "json", false, "print the schedule as one line of JSON")
	o.idFlag(command)
	command.AddCommand(newScheduleListCommand(a),
		newScheduleChangeCommand(a, "pause", "Pause a schedule", `Stop the messages of a schedule until "starter schedule resume".`,
			"paused", conversation.PauseSchedule),
		newScheduleChangeCommand(a, "resume", "Resume a paused schedule", "Resume a paused schedule. Messages that were due during the\npause are not sent.",
			"resumed", conversation.ResumeSchedule),
		newScheduleChangeCommand(a, "delete", "Delete a schedule", "Delete a schedule. The context remains.",
			"deleted", conversation.DeleteSchedule))
	return command
}

func (o *scheduleOptions) idFlag(command *cobra.Command) {
	command.Flags().StringVar(&o.id, "id", client.DefaultScheduleID,
		"`ID` of the schedule, for a context with several, 1-64 of A-Z a-z 0-9 . _ -, starting with a letter or digit")
}

func runSchedule(command *cobra.Command, o scheduleOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	flags := command.Flags()
	if !flags.Changed("cron") && !flags.Changed("every") {
		return usagef("--cron: missing (want times like \"0 9 * * MON-FRI\", or --every DURATION)")
	}
	if flags.Changed("every") && o.schedule.Every == 0 {
		return usagef("--every: 0s is invalid (want whole seconds, at least 1s)")
	}
	text, err := o.readMessage(o.message, flags.Changed("message"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return usagef("message: empty (want text)")
	}
	o.schedule.ID, o.schedule.Message = o.id, event.UserMessage{Content: text}
	if _, err := input(o.schedule.Message); err != nil {
		return err
	}
	to, err := o.open(command.Context(), o.name)
	if err != nil {
		return err
	}
	s, err := to.Schedule(command.Context(), o.schedule)
	isUnknown := errors.Is(err, client.ErrNextUnknown)
	if err != nil && !isUnknown {
		return scheduleFlags(err)
	}
	if o.json {
		return o.printJSON(scheduleJSONOf(s))
	}
	next := nextWords(s)
	if isUnknown && !s.IsPaused {
		next = "next time unknown"
	}
	o.note("schedule %s of context %s: %s, %s", s.ID, s.ContextName, times(s), next)
	return nil
}

// scheduleFlags names the flag of an invalid field; the fields have the names of the flags.
func scheduleFlags(err error) error {
	var invalid *client.ScheduleError
	if errors.As(err, &invalid) {
		return usagef("--%s: %s", invalid.Field, invalid.Problem)
	}
	return err
}

type scheduleJSON struct {
	ContextName string            `json:"contextName"`
	ID          string            `json:"id"`
	Cron        string            `json:"cron,omitempty"`
	EveryMs     int64             `json:"everyMs,omitempty"`
	Timezone    string            `json:"timezone,omitempty"`
	Message     event.UserMessage `json:"message"`
	Paused      bool              `json:"paused"`
	Next        time.Time         `json:"next,omitzero"`
}

func scheduleJSONOf(s client.Schedule) scheduleJSON {
	out := scheduleJSON{
		ContextName: s.ContextName, ID: s.ID, Cron: s.Cron, EveryMs: s.Every.Milliseconds(), Timezone: s.Timezone,
		Message: s.Message, Paused: s.IsPaused, Next: s.Next,
	}
	if s.IsPaused {
		out.Next = time.Time{}
	}
	return out
}

func times(s client.Schedule) string {
	if s.Every != 0 {
		return "every " + s.Every.String()
	}
	return strings.TrimSpace("cron " + s.Cron + " " + s.Timezone)
}

func nextWords(s client.Schedule) string {
	switch {
	case s.IsPaused:
		return "paused"
	case s.Next.IsZero():
		return "no further message"
	}
	return "next " + s.Next.Local().Format(time.DateTime)
}

func newScheduleListCommand(a *app) *cobra.Command {
	o := scheduleOptions{app: a}
	command := &cobra.Command{
		Use:   "list [-n NAME] [--json]",
		Short: "List the schedules",
		Long: `List the schedules of a context, or of all contexts of the namespace. A new
schedule appears after about a second.`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runScheduleList(command, o) },
	}
	nameFlag(command, &o.name, "", "`NAME` of the context (default: all contexts)")
	command.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	return command
}

func runScheduleList(command *cobra.Command, o scheduleOptions) error {
	if command.Flags().Changed("name") {
		if err := checkName(o.name); err != nil {
			return err
		}
	}
	ctx := command.Context()
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	var found []client.Schedule
	for s, err := range c.Schedules(ctx, o.name) {
		if err != nil {
			return err
		}
		if !o.json {
			found = append(found, s)
		} else if err := o.printJSON(scheduleJSONOf(s)); err != nil {
			return err
		}
	}
	if o.json {
		return nil
	}
	if len(found) == 0 {
		o.note("no schedules")
		return nil
	}
	table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTEXT\tID\tTIMES\tNEXT\tMESSAGE")
	for _, s := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", terminal.Line(s.ContextName), terminal.Line(s.ID), terminal.Line(times(s)),
			strings.TrimPrefix(nextWords(s), "next "), terminal.Line(s.Message.Content))
	}
	return table.Flush()
}

func newScheduleChangeCommand(a *app, verb, short, long, done string, change func(conversation, context.Context, string) error) *cobra.Command {
	o := &scheduleOptions{app: a}
	command := &cobra.Command{
		Use:   verb + " -n NAME [--id ID]",
		Short: short,
		Long:  long,
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			to, err := o.open(command.Context(), o.name)
			if err != nil {
				return err
			}
			if err := change(to, command.Context(), o.id); err != nil {
				return scheduleFlags(err)
			}
			o.note("%s schedule %s of context %s", done, o.id, o.name)
			return nil
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	o.idFlag(command)
	return command
}
