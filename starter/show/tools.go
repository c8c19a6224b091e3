package show

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Tools prints the tools of a context, those that could not be offered, and the calls that have no result yet. A nil
// set means no tools.
func Tools(w io.Writer, set *event.SetTools, withheld []event.WithheldTool, calls []reducer.Call) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, terminal.Line(fmt.Sprintf(format, args...)))
	}
	if set == nil || len(set.Tools) == 0 {
		row("tools", "none")
	} else {
		for _, t := range set.Tools {
			if t.IsClient() {
				row("client tool", "%s: %s", t.Name, Short(t.Description, shortMessage))
			} else {
				row("tool", "%s", t.Pattern)
			}
		}
		for _, t := range withheld {
			row("not offered", "%s: %s", t.Name, t.Reason)
		}
		for _, rule := range set.Approve {
			words := rule.Tool
			if rule.When != nil {
				words += " when " + Short(string(rule.When), shortMessage)
			}
			if set.IsIdle(rule) {
				words += " (matches none of the tools)"
			}
			row("approve", "%s", words)
		}
		limits := set.Limits()
		row("limits", "%d steps, %d calls at the same time, at most %d identical calls per turn, approvals and client results expire after %s",
			limits.MaxSteps, limits.Parallel, limits.MaxRepeats-1, limits.Expiry)
	}
	for _, c := range calls {
		row(string(c.State), "%s", Call(c))
	}
	return table.Flush()
}

// Call formats a call without a result: "fetch {…} (call_1), until 2026-01-02 15:04".
func Call(c reducer.Call) string {
	text := fmt.Sprintf("%s %s (%s)", c.Name, Short(string(c.Arguments), shortMessage), c.ID)
	if !c.Deadline.IsZero() {
		text += ", until " + Until(c.Deadline)
	}
	return text
}

// Until formats a deadline in local time.
func Until(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }
