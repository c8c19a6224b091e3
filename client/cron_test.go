package client

import (
	"testing"

	"github.com/stretchr/testify/require"
	sdkclient "go.temporal.io/sdk/client"
)

func TestACalendarIsShownAsItsCronExpression(t *testing.T) {
	type ranges = []sdkclient.ScheduleRange
	all := func(low, high int) ranges { return ranges{{Start: low, End: high, Step: 1}} }
	// calendar is that of an expression with all values in its other fields.
	calendar := func(change func(*sdkclient.ScheduleCalendarSpec)) sdkclient.ScheduleCalendarSpec {
		c := sdkclient.ScheduleCalendarSpec{
			Second: ranges{{Start: 0}}, Minute: all(0, 59), Hour: all(0, 23), DayOfMonth: all(1, 31), Month: all(1, 12), DayOfWeek: all(0, 6),
		}
		change(&c)
		return c
	}
	for want, change := range map[string]func(*sdkclient.ScheduleCalendarSpec){
		"* * * * *":       func(*sdkclient.ScheduleCalendarSpec) {},
		"0 18 * * *":      func(c *sdkclient.ScheduleCalendarSpec) { c.Minute, c.Hour = ranges{{}}, ranges{{Start: 18}} },
		"*/15 9-17 * * *": func(c *sdkclient.ScheduleCalendarSpec) { c.Minute[0].Step, c.Hour = 15, ranges{{Start: 9, End: 17}} },
		"* * 1,15-20/2 * *": func(c *sdkclient.ScheduleCalendarSpec) {
			c.DayOfMonth = ranges{{Start: 1, End: 1, Step: 1}, {Start: 15, End: 20, Step: 2}}
		},
		"* * * * * 2026":         func(c *sdkclient.ScheduleCalendarSpec) { c.Year = ranges{{Start: 2026}} },
		"30 * * * * * *":         func(c *sdkclient.ScheduleCalendarSpec) { c.Second = ranges{{Start: 30}} },
		"0 9 * * MON-FRI":        func(c *sdkclient.ScheduleCalendarSpec) { c.Comment = "0 9 * * MON-FRI" },
		"@daily":                 func(c *sdkclient.ScheduleCalendarSpec) { c.Comment = "@daily" },
		"0 6 * JAN,Mar mon 2026": func(c *sdkclient.ScheduleCalendarSpec) { c.Comment = "0 6 * JAN,Mar mon 2026" },
		"* * * 3 *": func(c *sdkclient.ScheduleCalendarSpec) {
			c.Comment, c.Month = "every morning for the team", ranges{{Start: 3}}
		},
		"* * * 4 *": func(c *sdkclient.ScheduleCalendarSpec) {
			c.Comment, c.Month = "5 minutes before the train", ranges{{Start: 4}}
		},
		"* * * 5 *": func(c *sdkclient.ScheduleCalendarSpec) {
			c.Comment, c.Month = "@ada asked for this", ranges{{Start: 5}}
		},
		"* * * 2 *": func(c *sdkclient.ScheduleCalendarSpec) { c.Comment, c.Month = "the dentist", ranges{{Start: 2}} },
		"0 0 * * *": func(c *sdkclient.ScheduleCalendarSpec) { *c = sdkclient.ScheduleCalendarSpec{} },
	} {
		require.Equal(t, want, cronOf(calendar(change)))
	}
}
