package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Details writes the details of a context as a table, without those that are not set.
func Details(w io.Writer, d reducer.Details) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	detailRows(d, func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, terminal.Line(fmt.Sprintf(format, args...)))
	})
	return table.Flush()
}

func detailRows(d reducer.Details, row func(name, format string, args ...any)) {
	if d.Title != "" {
		row("title", "%s", d.Title)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Labels)) {
		row("label", "%s %q", name, d.Labels[name])
	}
	if d.Owner != "" {
		row("owner", "%s", d.Owner)
	}
	if d.Archived {
		row("archived", "until it receives a user message")
	}
}
