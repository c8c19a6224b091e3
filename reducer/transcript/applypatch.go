package transcript

import (
	"fmt"
	"strings"
)

// parsePatch parses the "*** Begin Patch" format.
func parsePatch(patch string, relative func(string) string) []FileChange {
	var changes []FileChange
	var body strings.Builder
	flush := func() {
		if n := len(changes); n > 0 && body.Len() > 0 {
			switch c := &changes[n-1]; c.Action {
			case Write:
				c.Content = body.String()
			case Edit:
				c.UnifiedDiff = fmt.Sprintf("--- %s\n+++ %s\n%s", c.Path, c.Path, body.String())
			}
		}
		body.Reset()
	}
	begin := func(action Change, path string) {
		flush()
		changes = append(changes, FileChange{Action: action, Path: relative(strings.TrimSpace(path))})
	}
	for line := range strings.Lines(patch) {
		if header, ok := strings.CutPrefix(line, "*** "); ok {
			name, value, _ := strings.Cut(header, ":")
			switch name {
			case "Add File":
				begin(Write, value)
			case "Update File":
				begin(Edit, value)
			case "Delete File":
				begin(Delete, value)
			case "Move to":
				if n := len(changes); n > 0 {
					// The hunks follow the new name but refer to the old one.
					path := changes[n-1].Path
					changes[n-1] = FileChange{Action: Rename, Path: path, To: relative(strings.TrimSpace(value))}
					changes = append(changes, FileChange{Action: Edit, Path: path})
				}
			}
			continue
		}
		if n := len(changes); n > 0 && changes[n-1].Action == Write {
			line = strings.TrimPrefix(line, "+")
		}
		body.WriteString(line)
	}
	flush()
	kept := changes[:0]
	for _, c := range changes {
		if c.Action != Edit || c.UnifiedDiff != "" {
			kept = append(kept, c)
		}
	}
	return kept
}
