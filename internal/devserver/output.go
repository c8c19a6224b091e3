package devserver

import (
	"os"
	"regexp"
	"strings"
)

const tailLines = 10 // for error messages

var (
	greeting   = regexp.MustCompile(`(?m)^((\S+ )*CLI \S+ \(Server .*|(Server|UI|Metrics): +\S+)$`)
	stackTrace = regexp.MustCompile(`(?m)^goroutine \d+ \[.*\n(.+\n\t.*\n?)*`)
	emptyLines = regexp.MustCompile(`\n\s*\n`)
)

// lastLines returns the last lines of the log for an error, without stack traces, which are longer.
func (s *Server) lastLines() string {
	log, err := os.ReadFile(s.log.Name())
	if err != nil {
		return ""
	}
	return lastLines(string(log))
}

func lastLines(log string) string {
	log = greeting.ReplaceAllString(stackTrace.ReplaceAllString(log, ""), "")
	log = strings.TrimSpace(emptyLines.ReplaceAllString(log, "\n"))
	if log == "" {
		return ""
	}
	lines := strings.Split(log, "\n")
	return "; last lines:\n" + strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
