package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// schedules is a fake of Temporal's schedules, in memory. Calls without an implementation panic.
type schedules struct {
	sdkclient.ScheduleClient
	err error
	// all are the schedules by id, as a server returns them.
	all   map[string]*sdkclient.ScheduleDescription
	order []string
	// describeErr is the error of Describe.
	describeErr error
	// deleted is listed, but no longer there.
	deleted string
}

func (f *temporal) ScheduleClient() sdkclient.ScheduleClient {
	if f.schedules == nil {
		panic("unexpected use of schedules")
	}
	return f.schedules
}

// put stores a schedule as the server does: with compiled cron expressions and encoded arguments.
func (s *schedules) put(id string, spec sdkclient.ScheduleSpec, action sdkclient.ScheduleAction, policy *sdkclient.SchedulePolicies, state *sdkclient.ScheduleState) error {
	if s.err != nil {
		return s.err
	}
	for _, expression := range spec.CronExpressions {
		_, comment, _ := strings.Cut(expression, "#")
		spec.Calendars = append(spec.Calendars, sdkclient.ScheduleCalendarSpec{Comment: strings.TrimSpace(comment)})
	}
	spec.CronExpressions = nil
	stored := *action.(*sdkclient.ScheduleWorkflowAction)
	stored.Args = slices.Clone(stored.Args)
	for i, arg := range stored.Args {
		payload, err := converter.GetDefaultDataConverter().ToPayload(arg)
		if err != nil {
			return err
		}
		stored.Args[i] = payload
	}
	if s.all[id] == nil {
		s.order = append(s.order, id)
	}
	if s.all == nil {
		s.all = map[string]*sdkclient.ScheduleDescription{}
	}
	s.all[id] = &sdkclient.ScheduleDescription{
		Schedule: sdkclient.Schedule{Spec: &spec, Action: &stored, Policy: policy, State: state},
		Info:     sdkclient.ScheduleInfo{NextActionTimes: []time.Time{nextScheduled}},
	}
	return nil
}

var nextScheduled = time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)

func (s *schedules) Create(_ context.Context, o sdkclient.ScheduleOptions) (sdkclient.ScheduleHandle, error) {
	if s.all[o.ID] != nil {
		return nil, sdktemporal.ErrScheduleAlreadyRunning
	}
	policy := &sdkclient.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow}
	return scheduleHandle{schedules: s, id: o.ID}, s.put(o.ID, o.Spec, o.Action, policy, &sdkclient.ScheduleState{})
}

func (s *schedules) GetHandle(_ context.Context, id string) sdkclient.ScheduleHandle {
	return scheduleHandle{schedules: s, id: id}
}

func (s *schedules) List(context.Context, sdkclient.ScheduleListOptions) (sdkclient.ScheduleListIterator, error) {
	return &scheduleList{schedules: s, ids: s.order}, nil
}

type scheduleList struct {
	schedules *schedules
	ids       []string
}

func (l *scheduleList) HasNext() bool { return len(l.ids) > 0 }

func (l *scheduleList) Next() (*sdkclient.ScheduleListEntry, error) {
	id := l.ids[0]
	l.ids = l.ids[1:]
	return &sdkclient.ScheduleListEntry{ID: id}, l.schedules.err
}

type scheduleHandle struct {
	sdkclient.ScheduleHandle
	schedules *schedules
	id        string
}

func (h scheduleHandle) get() (*sdkclient.ScheduleDescription, error) {
	d := h.schedules.all[h.id]
	switch {
	case h.schedules.err != nil:
		return nil, h.schedules.err
	case d == nil || h.id == h.schedules.deleted:
		return nil, serviceerror.NewNotFound("no such schedule")
	}
	return d, nil
}

func (h scheduleHandle) Describe(context.Context) (*sdkclient.ScheduleDescription, error) {
	if h.schedules.describeErr != nil {
		return nil, h.schedules.describeErr
	}
	return h.get()
}

func (h scheduleHandle) Update(_ context.Context, o sdkclient.ScheduleUpdateOptions) error {
	d, err := h.get()
	if err != nil {
		return err
	}
	updated, err := o.DoUpdate(sdkclient.ScheduleUpdateInput{Description: *d})
	if err != nil {
		return err
	}
	u := updated.Schedule
	return h.schedules.put(h.id, *u.Spec, u.Action, u.Policy, u.State)
}

func (h scheduleHandle) Pause(context.Context, sdkclient.SchedulePauseOptions) error {
	d, err := h.get()
	if err == nil {
		d.Schedule.State.Paused = true
	}
	return err
}

func (h scheduleHandle) Unpause(context.Context, sdkclient.ScheduleUnpauseOptions) error {
	d, err := h.get()
	if err == nil {
		d.Schedule.State.Paused = false
	}
	return err
}

func (h scheduleHandle) Delete(context.Context) error {
	_, err := h.get()
	delete(h.schedules.all, h.id)
	return err
}

func list(t *testing.T, c *client.Client, contextName string) (all []client.Schedule) {
	for s, err := range c.Schedules(t.Context(), contextName) {
		require.NoError(t, err)
		all = append(all, s)
	}
	return all
}

func TestAScheduleStartsAWorkflowThatSendsTheMessage(t *testing.T) {
	f := &temporal{schedules: &schedules{}}
	demo, err := client.New(client.Options{Temporal: f, TaskQueue: "mine"}).Open("demo")
	require.NoError(t, err)
	_, err = demo.Schedule(t.Context(), client.Schedule{
		ID: "daily", Cron: " 0 9 * * * # mornings", Timezone: "Europe/Berlin", Message: event.UserMessage{Content: "Hello"},
	})
	require.NoError(t, err)
	stored := f.schedules.all["send:demo/daily"].Schedule
	action := stored.Action.(*sdkclient.ScheduleWorkflowAction)
	require.Equal(t, []any{"send:demo/daily", "Send", "mine"}, []any{action.ID, action.Workflow, action.TaskQueue})
	require.Len(t, action.Args, 1)
	require.Equal(t, `{"contextName":"demo","event":{"_tag":"UserMessageEvent","content":"Hello"}}`,
		string(action.Args[0].(*commonpb.Payload).GetData()))
	require.Equal(t, &sdkclient.ScheduleSpec{
		TimeZoneName: "Europe/Berlin", Calendars: []sdkclient.ScheduleCalendarSpec{{Comment: "0 9 * * *"}},
	}, stored.Spec)
	require.Equal(t, &sdkclient.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: time.Hour}, stored.Policy)
}

func TestSchedulesAreListedAsCreatedAndReplaced(t *testing.T) {
	f := &temporal{schedules: &schedules{}}
	c := client.New(client.Options{Temporal: f})
	demo, err := c.Open("demo")
	require.NoError(t, err)
	other, err := c.Open("other")
	require.NoError(t, err)
	hello := event.UserMessage{Content: "Hello", Settings: &event.RequestSettings{Seed: new(int64(7))}}
	first, err := demo.Schedule(t.Context(), client.Schedule{Cron: "0 9 * * MON", Timezone: "Europe/Berlin", Message: hello})
	require.NoError(t, err)
	require.Equal(t, client.Schedule{
		ContextName: "demo", ID: "default", Cron: "0 9 * * MON", Timezone: "Europe/Berlin", Message: hello, Next: nextScheduled,
	}, first)
	second, err := other.Schedule(t.Context(), client.Schedule{ID: "tick", Every: time.Minute, Message: event.UserMessage{Content: "Tick"}})
	require.NoError(t, err)
	require.Equal(t, []client.Schedule{first, second}, list(t, c, ""))
	require.Equal(t, []client.Schedule{second}, list(t, c, "other"))

	require.NoError(t, demo.PauseSchedule(t.Context(), ""))
	first.IsPaused = true
	require.Equal(t, []client.Schedule{first}, list(t, c, "demo"))
	replaced, err := demo.Schedule(t.Context(), client.Schedule{Every: time.Hour, Message: event.UserMessage{Content: "Hi"}})
	require.NoError(t, err)
	require.True(t, replaced.IsPaused, "a paused schedule remains paused")
	require.Equal(t, []client.Schedule{replaced}, list(t, c, "demo"))
	require.NoError(t, demo.ResumeSchedule(t.Context(), ""))
	require.False(t, list(t, c, "demo")[0].IsPaused)

	require.NoError(t, demo.DeleteSchedule(t.Context(), ""))
	require.Empty(t, list(t, c, "demo"))
	for _, change := range []func(context.Context, string) error{demo.PauseSchedule, demo.ResumeSchedule, demo.DeleteSchedule} {
		err := change(t.Context(), "")
		require.ErrorIs(t, err, client.ErrNoSchedule)
		require.ErrorContains(t, err, "a schedule of context demo: no such schedule: default")
	}
}

func TestAScheduleIsStoredEvenIfItsNextTimeCannotBeRead(t *testing.T) {
	f := &temporal{schedules: &schedules{describeErr: serviceerror.NewUnavailable("down")}}
	demo := open(t, f)
	hourly := client.Schedule{Every: time.Hour, Message: event.UserMessage{Content: "Hi"}}
	want := hourly
	want.ContextName, want.ID = "demo", client.DefaultScheduleID
	for range 2 { // created, then replaced
		stored, err := demo.Schedule(t.Context(), hourly)
		require.ErrorIs(t, err, client.ErrNextUnknown)
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.Equal(t, want, stored)
		require.Len(t, f.schedules.all, 1)
	}
	require.NoError(t, demo.PauseSchedule(t.Context(), ""))
	want.IsPaused = true
	stored, err := demo.Schedule(t.Context(), hourly)
	require.ErrorIs(t, err, client.ErrNextUnknown)
	require.Equal(t, want, stored)
}

func TestOtherSchedulesAreNotListed(t *testing.T) {
	f := &temporal{schedules: &schedules{}}
	c := client.New(client.Options{Temporal: f})
	demo, err := c.Open("demo")
	require.NoError(t, err)
	_, err = demo.Schedule(t.Context(), client.Schedule{Every: time.Hour, Message: event.UserMessage{Content: "Hi"}})
	require.NoError(t, err)
	state := &sdkclient.ScheduleState{}
	for id, args := range map[string][]any{"backup": {1}, "send:demo/two": {1, 2}, "send:demo/text": {"x"}, "send:demo/event": {wire.Scheduled{Event: []byte(`{}`)}}} {
		action := &sdkclient.ScheduleWorkflowAction{Workflow: wire.WorkflowSend, Args: args}
		require.NoError(t, f.schedules.put(id, sdkclient.ScheduleSpec{}, action, nil, state))
	}
	other := &sdkclient.ScheduleWorkflowAction{Workflow: "Backup", Args: []any{1}}
	require.NoError(t, f.schedules.put("send:demo/backup", sdkclient.ScheduleSpec{}, other, nil, state))
	require.Len(t, list(t, c, ""), 1)
	f.schedules.deleted = wire.ScheduleID("demo", client.DefaultScheduleID)
	require.Empty(t, list(t, c, ""), "a schedule deleted since it was listed")
}

func TestInvalidSchedulesNameTheField(t *testing.T) {
	hello := event.UserMessage{Content: "Hello"}
	rejecting := func(problem string) *schedules {
		return &schedules{err: serviceerror.NewInvalidArgument("Invalid schedule spec: " + problem)}
	}
	for name, test := range map[string]struct {
		schedule client.Schedule
		server   *schedules
		want     string
	}{
		"no times":           {client.Schedule{Message: hello}, nil, "cron: missing (want a cron expression or an interval)"},
		"two kinds of times": {client.Schedule{Cron: "@daily", Every: time.Hour}, nil, "every: cannot be used with a cron expression"},
		"a short interval":   {client.Schedule{Every: time.Millisecond}, nil, "every: 1ms is invalid (want whole seconds, at least 1s)"},
		"half a second":      {client.Schedule{Every: 1500 * time.Millisecond}, nil, "every: 1.5s is invalid (want whole seconds, at least 1s)"},
		"a negative one":     {client.Schedule{Every: -time.Hour}, nil, "every: -1h0m0s is invalid (want whole seconds, at least 1s)"},
		"a time zone":        {client.Schedule{Every: time.Hour, Timezone: "UTC"}, nil, "timezone: requires a cron expression"},
		"only a comment":     {client.Schedule{Cron: "# daily"}, nil, "cron: missing or too long (want a cron expression of at most 1000 bytes, including its comment)"},
		"an id":              {client.Schedule{ID: "a/b", Every: time.Hour}, nil, `id: "a/b" is invalid (want 1-64 of A-Z a-z 0-9 . _ -, first a letter or digit)`},
		"a long message": {client.Schedule{Every: time.Hour, Message: event.UserMessage{Content: strings.Repeat("x", wire.MaxScheduledBytes)}}, nil,
			"message: 32808 bytes of JSON (at most 32768)"},
		"a cron expression": {client.Schedule{Cron: "61 * * * *", Message: hello}, rejecting("Minute is not in range [0-59]"),
			`cron: "61 * * * *" is invalid: minute is not in range [0-59] (want MINUTE HOUR DAY MONTH WEEKDAY, like "0 9 * * MON-FRI", or @daily)`},
		"a word": {client.Schedule{Cron: "daily # at noon", Message: hello}, rejecting("CronString does not have 5-7 fields"),
			`cron: "daily # at noon" is invalid: it does not have 5 to 7 fields, but 1 (want MINUTE HOUR DAY MONTH WEEKDAY, like "0 9 * * MON-FRI", or @daily)`},
		"an unknown time zone": {client.Schedule{Cron: "@daily", Timezone: "Mars", Message: hello}, rejecting("unknown time zone Mars"),
			`timezone: "Mars" is invalid: unknown time zone Mars (want a name like Europe/Berlin)`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, &temporal{schedules: test.server}).Schedule(t.Context(), test.schedule)
			var invalid *client.ScheduleError
			require.ErrorAs(t, err, &invalid)
			require.EqualError(t, err, test.want)
		})
	}
	t.Run("an invalid message", func(t *testing.T) {
		_, err := open(t, &temporal{}).Schedule(t.Context(), client.Schedule{
			Every: time.Hour, Message: event.UserMessage{Content: "Hi", Settings: &event.RequestSettings{TopP: new(2.0)}},
		})
		require.ErrorAs(t, err, new(*event.FieldError))
	})
}

func TestSchedulesOfAnUnreachableServer(t *testing.T) {
	f := &temporal{schedules: &schedules{err: serviceerror.NewUnavailable("down"), order: []string{"send:demo/default"}}}
	demo := open(t, f)
	_, err := demo.Schedule(t.Context(), client.Schedule{Every: time.Hour, Message: event.UserMessage{Content: "Hi"}})
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorIs(t, demo.PauseSchedule(t.Context(), ""), client.ErrUnreachable)
	for _, err := range client.New(client.Options{Temporal: f}).Schedules(t.Context(), "") {
		require.ErrorIs(t, err, client.ErrUnreachable)
	}
	var invalid *client.ScheduleError
	require.False(t, errors.As(err, &invalid))
}
