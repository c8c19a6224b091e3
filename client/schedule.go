package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Schedule sends a message to a context repeatedly. It is a Temporal Schedule that starts a
// workflow of type Send at each scheduled time; only workers have to run.
type Schedule struct {
	ContextName string
	// ID in the context: 1-64 of A-Z a-z 0-9 . _ -, first a letter or digit. Empty: DefaultScheduleID.
	ID string
	// Cron is a cron expression of Temporal, like "0 9 * * MON-FRI" or "@daily"; or set Every.
	Cron string
	// Every is in whole seconds. Messages are due at its multiples since the Unix epoch.
	Every    time.Duration
	Timezone string // of Cron, a name of the IANA database; empty: UTC
	Message  event.UserMessage
	IsPaused bool      // output only
	Next     time.Time // output only; zero if the schedule sends no further messages
}

// DefaultScheduleID is the id of a schedule without one.
const DefaultScheduleID = "default"

const (
	catchupWindow = time.Hour // messages due while the server is down are sent if it is back within this time
	maxScheduleID = 64
	minEvery      = time.Second
	maxCronBytes  = 1000
)

// ScheduleError reports an invalid field of a [Schedule].
type ScheduleError struct {
	Field   string // cron, every, timezone, id or message
	Problem string
}

func (e *ScheduleError) Error() string { return e.Field + ": " + e.Problem }

var scheduleID = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._-]{0,%d}$`, maxScheduleID-1))

func checkScheduleID(id string) error {
	if !scheduleID.MatchString(id) {
		return &ScheduleError{"id", fmt.Sprintf("%q is invalid (want 1-%d of A-Z a-z 0-9 . _ -, first a letter or digit)", id, maxScheduleID)}
	}
	return nil
}

// Schedule creates a schedule, or replaces the one with the same id; a paused one remains paused.
// It returns the schedule with its next time. The context need not exist. Without a worker, the
// first message that is due waits, and later ones are skipped. A message that is due while the
// server is down is sent up to an hour late. The error is a *ScheduleError for an invalid schedule,
// or ErrNextUnknown if the schedule was stored and is returned without its next time.
func (c *Context) Schedule(ctx context.Context, s Schedule) (Schedule, error) {
	s.ContextName = c.Name()
	if s.ID == "" {
		s.ID = DefaultScheduleID
	}
	spec, err := s.spec()
	if err != nil {
		return Schedule{}, err
	}
	s.IsPaused, s.Next = false, time.Time{}
	action, err := c.sendAction(s)
	if err != nil {
		return Schedule{}, err
	}
	policy := sdkclient.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchupWindow}
	schedules := c.client.options.Temporal.ScheduleClient()
	handle, err := schedules.Create(ctx, sdkclient.ScheduleOptions{
		ID: wire.ScheduleID(c.name, s.ID), Spec: spec, Action: action, Overlap: policy.Overlap, CatchupWindow: policy.CatchupWindow,
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		handle = schedules.GetHandle(ctx, wire.ScheduleID(c.name, s.ID))
		err = handle.Update(ctx, sdkclient.ScheduleUpdateOptions{
			DoUpdate: func(in sdkclient.ScheduleUpdateInput) (*sdkclient.ScheduleUpdate, error) {
				s.IsPaused = in.Description.Schedule.State.Paused
				return &sdkclient.ScheduleUpdate{Schedule: &sdkclient.Schedule{
					Spec: &spec, Action: action, Policy: &policy, State: in.Description.Schedule.State,
				}}, nil
			},
		})
	}
	if err != nil {
		return Schedule{}, c.scheduleError(ctx, "schedule a message to", s, err)
	}
	described, err := handle.Describe(ctx)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrNextUnknown, c.explain(ctx, "get the schedule of", err, ErrBusy))
	}
	s.IsPaused, s.Next = described.Schedule.State.Paused, nextTime(described.Info)
	return s, nil
}

func (s Schedule) spec() (sdkclient.ScheduleSpec, error) {
	spec := sdkclient.ScheduleSpec{TimeZoneName: s.Timezone}
	cron, _, _ := strings.Cut(s.Cron, "#")
	cron = strings.TrimSpace(cron)
	invalid := func(field, problem string) (sdkclient.ScheduleSpec, error) {
		return spec, &ScheduleError{field, problem}
	}
	if err := checkScheduleID(s.ID); err != nil {
		return spec, err
	}
	switch {
	case s.Cron == "" && s.Every == 0:
		return invalid("cron", "missing (want a cron expression or an interval)")
	case s.Cron != "" && s.Every != 0:
		return invalid("every", "cannot be used with a cron expression")
	case s.Every != 0 && s.Timezone != "":
		return invalid("timezone", "requires a cron expression")
	case s.Every != 0 && (s.Every < minEvery || s.Every%time.Second != 0):
		return invalid("every", fmt.Sprintf("%s is invalid (want whole seconds, at least %s)", s.Every, minEvery))
	case s.Every != 0:
		spec.Intervals = []sdkclient.ScheduleIntervalSpec{{Every: s.Every}}
		return spec, nil
	case cron == "" || len(s.Cron) > maxCronBytes:
		return invalid("cron", fmt.Sprintf("missing or too long (want a cron expression of at most %d bytes, including its comment)", maxCronBytes))
	}
	// The server compiles the expression and keeps only its comment as text.
	spec.CronExpressions = []string{cron + " # " + cron}
	return spec, nil
}

func (c *Context) sendAction(s Schedule) (*sdkclient.ScheduleWorkflowAction, error) {
	e := event.New(s.Message)
	if err := Validate(e); err != nil {
		return nil, err
	}
	data, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if len(data) > wire.MaxScheduledBytes {
		return nil, &ScheduleError{"message", fmt.Sprintf("%d bytes of JSON (at most %d)", len(data), wire.MaxScheduledBytes)}
	}
	return &sdkclient.ScheduleWorkflowAction{
		ID: wire.ScheduleID(c.name, s.ID), Workflow: wire.WorkflowSend, TaskQueue: c.client.options.TaskQueue,
		Args: []any{wire.Scheduled{ContextName: c.name, Event: data}},
	}, nil
}

// PauseSchedule stops a schedule (empty id: DefaultScheduleID) until it is resumed. The error is
// ErrNoSchedule if there is none.
func (c *Context) PauseSchedule(ctx context.Context, id string) error {
	return c.changeSchedule(ctx, "pause a schedule of", id, func(h sdkclient.ScheduleHandle) error {
		return h.Pause(ctx, sdkclient.SchedulePauseOptions{})
	})
}

// ResumeSchedule resumes a schedule. Messages that were due during the pause are not sent. The id and
// the error are as for [Context.PauseSchedule].
func (c *Context) ResumeSchedule(ctx context.Context, id string) error {
	return c.changeSchedule(ctx, "resume a schedule of", id, func(h sdkclient.ScheduleHandle) error {
		return h.Unpause(ctx, sdkclient.ScheduleUnpauseOptions{})
	})
}

// DeleteSchedule removes a schedule. A message that is being sent is still sent. The id and the error
// are as for [Context.PauseSchedule].
func (c *Context) DeleteSchedule(ctx context.Context, id string) error {
	return c.changeSchedule(ctx, "delete a schedule of", id, func(h sdkclient.ScheduleHandle) error { return h.Delete(ctx) })
}

func (c *Context) changeSchedule(ctx context.Context, operation, id string, change func(sdkclient.ScheduleHandle) error) error {
	if id == "" {
		id = DefaultScheduleID
	}
	if err := checkScheduleID(id); err != nil {
		return err
	}
	err := change(c.client.options.Temporal.ScheduleClient().GetHandle(ctx, wire.ScheduleID(c.name, id)))
	return c.scheduleError(ctx, operation, Schedule{ID: id}, err)
}

func (c *Context) scheduleError(ctx context.Context, operation string, s Schedule, err error) error {
	var invalid *serviceerror.InvalidArgument
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*serviceerror.NotFound)):
		return fmt.Errorf("%s context %s: %w: %s", operation, c.Name(), ErrNoSchedule, s.ID)
	case errors.As(err, &invalid) && s.Cron != "":
		problem := strings.TrimPrefix(invalid.Message, "Invalid schedule spec: ")
		if s.Timezone != "" && strings.Contains(problem, "time zone") {
			return &ScheduleError{"timezone", fmt.Sprintf("%q is invalid: %s (want a name like Europe/Berlin)", s.Timezone, problem)}
		}
		return &ScheduleError{"cron", fmt.Sprintf(
			"%q is invalid: %s (want MINUTE HOUR DAY MONTH WEEKDAY, like \"0 9 * * MON-FRI\", or @daily)", s.Cron, cronProblem(s.Cron, problem))}
	}
	return c.explain(ctx, operation, err, ErrBusy)
}

// cronProblem rewords a problem of the server, such as "Minute is not in range [0-59]".
func cronProblem(cron, problem string) string {
	if strings.Contains(problem, "does not have 5-7 fields") {
		expression, _, _ := strings.Cut(cron, "#")
		return fmt.Sprintf("it does not have 5 to 7 fields, but %d", len(strings.Fields(expression)))
	}
	first, size := utf8.DecodeRuneInString(problem)
	return string(unicode.ToLower(first)) + problem[size:]
}

// Schedules yields the schedules of a context (empty: all). A new one appears after about a second.
// Schedules of other workflows are omitted. An error, such as ErrUnreachable, comes last.
func (c *Client) Schedules(ctx context.Context, contextName string) iter.Seq2[Schedule, error] {
	return func(yield func(Schedule, error) bool) {
		fail := func(err error) { yield(Schedule{}, fmt.Errorf("list schedules: %w", unreachable(ctx, err))) }
		schedules := c.options.Temporal.ScheduleClient()
		entries, err := schedules.List(ctx, sdkclient.ScheduleListOptions{})
		if err != nil {
			fail(err)
			return
		}
		for entries.HasNext() {
			entry, err := entries.Next()
			if err != nil {
				fail(err)
				return
			}
			name, id, ok := wire.ParseScheduleID(entry.ID)
			if ok {
				name, ok = c.nameOf(name)
			}
			if !ok || contextName != "" && name != contextName {
				continue
			}
			described, err := schedules.GetHandle(ctx, entry.ID).Describe(ctx)
			if errors.As(err, new(*serviceerror.NotFound)) {
				continue // deleted since it was listed
			}
			if err != nil {
				fail(err)
				return
			}
			s, ok := scheduleOf(described)
			if s.ContextName, s.ID = name, id; ok && !yield(s, nil) {
				return
			}
		}
	}
}

func scheduleOf(d *sdkclient.ScheduleDescription) (s Schedule, ok bool) {
	action, ok := d.Schedule.Action.(*sdkclient.ScheduleWorkflowAction)
	if !ok || action.Workflow != wire.WorkflowSend || len(action.Args) != 1 {
		return s, false
	}
	var in wire.Scheduled
	payload, ok := action.Args[0].(*commonpb.Payload)
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &in) != nil {
		return s, false
	}
	var e event.Event
	if json.Unmarshal(in.Event, &e) != nil {
		return s, false
	}
	s.Message, ok = e.Body.(event.UserMessage)
	s.Timezone, s.IsPaused, s.Next = d.Schedule.Spec.TimeZoneName, d.Schedule.State.Paused, nextTime(d.Info)
	for _, calendar := range d.Schedule.Spec.Calendars {
		s.Cron = cronOf(calendar)
	}
	for _, interval := range d.Schedule.Spec.Intervals {
		s.Every = interval.Every
	}
	return s, ok
}

func nextTime(info sdkclient.ScheduleInfo) time.Time {
	if len(info.NextActionTimes) == 0 {
		return time.Time{}
	}
	return info.NextActionTimes[0]
}
