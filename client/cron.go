package client

import (
	"fmt"
	"regexp"
	"strings"

	sdkclient "go.temporal.io/sdk/client"
)

// cronComment matches the cron expressions that this package keeps in the comments of calendars: one like @daily, or
// five to seven fields of numbers and names of months and days.
var cronComment = regexp.MustCompile(`(?i)^(@[a-z]+|` + cronFieldPattern + `(\s+` + cronFieldPattern + `){4,6})$`)

const cronFieldPattern = `([-0-9*,/?]|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)[a-z]*)+`

// cronOf returns the cron expression of a calendar, from which the server has made it. Schedules of this
// package keep the expression in the comment, others may have any comment or none.
func cronOf(c sdkclient.ScheduleCalendarSpec) string {
	if cronComment.MatchString(c.Comment) {
		return c.Comment
	}
	fields := []string{
		cronField(c.Minute, "0", 0, 59), cronField(c.Hour, "0", 0, 23),
		cronField(c.DayOfMonth, "*", 1, 31), cronField(c.Month, "*", 1, 12), cronField(c.DayOfWeek, "*", 0, 6),
	}
	second, year := cronField(c.Second, "0", 0, 59), cronField(c.Year, "*", 0, 0)
	if second != "0" {
		fields = append([]string{second}, append(fields, year)...)
	} else if year != "*" {
		fields = append(fields, year)
	}
	return strings.Join(fields, " ")
}

// cronField formats ranges of values from low to high; none is the text without a range.
func cronField(ranges []sdkclient.ScheduleRange, none string, low, high int) string {
	if len(ranges) == 0 {
		return none
	}
	var parts []string
	for _, r := range ranges {
		part := fmt.Sprint(r.Start)
		switch end := max(r.Start, r.End); {
		case r.Start == low && end == high && low < high:
			part = "*"
		case end > r.Start:
			part = fmt.Sprintf("%d-%d", r.Start, end)
		}
		if r.Step > 1 {
			part += fmt.Sprintf("/%d", r.Step)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}
