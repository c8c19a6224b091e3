package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestScheduleCreatesASchedule(t *testing.T) {
	utc(t)
	for _, test := range []struct {
		name  string
		args  []string
		stdin string
		want  client.Schedule
		out   string
		note  string
	}{
		{"with a cron expression", []string{"--cron", "0 9 * * MON", "--timezone", "Europe/Berlin", "-m", "Plan"}, "",
			client.Schedule{ContextName: "demo", ID: "default", Cron: "0 9 * * MON", Timezone: "Europe/Berlin", Message: event.UserMessage{Content: "Plan"}},
			"", "schedule default of context demo: cron 0 9 * * MON Europe/Berlin, next 2026-01-02 15:04:05\n"},
		{"with an interval", []string{"--every", "6h", "--id", "news"}, "What is new?\n",
			client.Schedule{ContextName: "demo", ID: "news", Every: 6 * time.Hour, Message: event.UserMessage{Content: "What is new?"}},
			"", "schedule news of context demo: every 6h0m0s, next 2026-01-02 15:04:05\n"},
		{"as JSON", []string{"--every", "6h", "-m", "Hi", "--json"}, "",
			client.Schedule{ContextName: "demo", ID: "default", Every: 6 * time.Hour, Message: event.UserMessage{Content: "Hi"}},
			`{"contextName":"demo","id":"default","everyMs":21600000,"message":{"content":"Hi"},"paused":false,"next":"2026-01-02T15:04:05Z"}` + "\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			got := starter(t, f, test.stdin, append([]string{"schedule", "-n", "demo"}, test.args...)...)
			require.Equal(t, outcome{0, test.out, test.note}, got)
			require.Equal(t, []client.Schedule{test.want}, f.scheduled)
		})
	}
}

func TestAScheduleWithoutAKnownNextTimeIsReportedAsStored(t *testing.T) {
	args := []string{"schedule", "-n", "demo", "--every", "6h", "-m", "Hi"}
	f := newFake(t)
	f.err = fmt.Errorf("%w: temporal is unreachable", client.ErrNextUnknown)
	require.Equal(t, outcome{0, "", "schedule default of context demo: every 6h0m0s, next time unknown\n"}, starter(t, f, "", args...))
	require.Equal(t, outcome{0, `{"contextName":"demo","id":"default","everyMs":21600000,"message":{"content":"Hi"},"paused":false}` + "\n", ""},
		starter(t, f, "", append(args, "--json")...))
	require.Len(t, f.scheduled, 2)
}

// utc makes local times those of UTC.
func utc(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
}

func TestInvalidSchedulesAreUsageErrorsThatNameTheFlag(t *testing.T) {
	for _, test := range []struct {
		args []string
		err  error
		want string
	}{
		{[]string{"-m", "Hi"}, nil, `--cron: missing (want times like "0 9 * * MON-FRI", or --every DURATION)`},
		{[]string{"-m", "Hi", "--every", "0s"}, nil, "--every: 0s is invalid (want whole seconds, at least 1s)"},
		{[]string{"-m", " ", "--every", "1h"}, nil, "message: empty"},
		{[]string{"-m", "Hi", "--cron", "61 * * * *"}, &client.ScheduleError{Field: "cron", Problem: `"61 * * * *" is invalid`},
			`--cron: "61 * * * *" is invalid`},
		{[]string{"-m", "Hi", "--every", "1h", "--id", "a/b"}, &client.ScheduleError{Field: "id", Problem: `"a/b" is invalid`}, `--id: "a/b" is invalid`},
	} {
		f := newFake(t)
		f.err = test.err
		got := starter(t, f, "", append([]string{"schedule", "-n", "demo"}, test.args...)...)
		require.Equal(t, exit.Usage, got.code, test.args)
		require.Contains(t, got.errOut, "starter schedule: "+test.want)
	}
}

func TestSchedulesArePausedResumedAndDeleted(t *testing.T) {
	f := newFake(t)
	require.Equal(t, outcome{0, "", "paused schedule news of context demo\n"}, starter(t, f, "", "schedule", "pause", "-n", "demo", "--id", "news"))
	require.Equal(t, outcome{0, "", "resumed schedule news of context demo\n"}, starter(t, f, "", "schedule", "resume", "-n", "demo", "--id", "news"))
	require.Equal(t, outcome{0, "", "deleted schedule default of context demo\n"}, starter(t, f, "", "schedule", "delete", "-n", "demo"))
	require.Equal(t, []string{"pause news", "resume news", "delete default"}, f.asked)

	f.err = client.ErrNoSchedule
	for _, verb := range []string{"pause", "resume", "delete"} {
		require.Equal(t, outcome{exit.Failure, "", "starter: no such schedule\n"}, starter(t, f, "", "schedule", verb, "-n", "demo"))
		require.Equal(t, exit.Usage, starter(t, f, "", "schedule", verb).code)
	}
}

func TestScheduleListShowsTheSchedulesOfOneOrAllContexts(t *testing.T) {
	utc(t)
	next := time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)
	c := &fakeClient{context: newFake(t), schedules: []client.Schedule{
		{ContextName: "demo", ID: "default", Cron: "0 9 * * *", Message: event.UserMessage{Content: "Plan\nmy day"}, Next: next},
		{ContextName: "demo", ID: "news", Every: time.Hour, Message: event.UserMessage{Content: "News?"}, Next: next, IsPaused: true},
		{ContextName: "other", ID: "default", Cron: "0 0 1 1 * 2020", Message: event.UserMessage{Content: "Hi"}},
	}}
	list := func(args ...string) outcome {
		return starterWith(t, t.Context(), c, strings.NewReader(""), append([]string{"schedule", "list"}, args...)...)
	}
	require.Equal(t, outcome{0, `CONTEXT  ID       TIMES                NEXT                 MESSAGE
demo     default  cron 0 9 * * *       2026-01-02 09:00:00  Plan my day
demo     news     every 1h0m0s         paused               News?
other    default  cron 0 0 1 1 * 2020  no further message   Hi
`, ""}, list())
	require.Equal(t, outcome{0, `{"contextName":"demo","id":"default","cron":"0 9 * * *","message":{"content":"Plan\nmy day"},"paused":false,"next":"2026-01-02T09:00:00Z"}
{"contextName":"demo","id":"news","everyMs":3600000,"message":{"content":"News?"},"paused":true}
`, ""}, list("-n", "demo", "--json"))
	require.Equal(t, outcome{0, "", "no schedules\n"}, list("-n", "none"))
	require.Equal(t, exit.Usage, list("-n", "de mo").code)
}
