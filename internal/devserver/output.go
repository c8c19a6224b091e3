package devserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const tailLines = 10 // for error messages

var (
	greeting   = regexp.MustCompile(`^(\S+ )*CLI \S+ \(Server |^(Server|UI|Metrics): +\S+$`)
	stackTrace = regexp.MustCompile(`^goroutine \d+ \[`)
)

// output writes the server's output to its log file and to a logger. It keeps the last lines, except
// those of stack traces: they are longer than the tail.
type output struct {
	file   io.Writer
	logger *slog.Logger
	// quiet disables the logger during shutdown, when the server warns about every
	// connection it closes.
	quiet atomic.Bool

	mu           sync.Mutex
	partial      []byte
	tail         []string
	isStackTrace bool // until the next record
}

// Write never fails, so a full disk does not block the server.
func (o *output) Write(p []byte) (int, error) {
	_, _ = o.file.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = append(o.partial, p...)
	for {
		line, rest, found := bytes.Cut(o.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		o.partial = rest
		o.line(string(line))
	}
}

func (o *output) line(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	record, isRecord := parseLine(line)
	o.isStackTrace = !isRecord && (o.isStackTrace || stackTrace.MatchString(line))
	if o.isStackTrace || greeting.MatchString(line) {
		return
	}
	o.tail = append(o.tail, plain(record, line))
	if len(o.tail) > tailLines {
		o.tail = o.tail[1:]
	}
	ctx := context.Background()
	if !o.quiet.Load() && o.logger.Enabled(ctx, record.Level) {
		_ = o.logger.Handler().Handle(ctx, record)
	}
}

func (o *output) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.tail, "\n")
}

// parseLine returns a line that is not a JSON record as a message of level info. The server writes its
// message as "msg", the Web UI as "message".
func parseLine(line string) (record slog.Record, isRecord bool) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return slog.NewRecord(time.Now(), slog.LevelInfo, line, 0), false
	}
	take := func(key string) string {
		value, _ := fields[key].(string)
		delete(fields, key)
		return value
	}
	at, err := time.Parse(time.RFC3339Nano, take("time"))
	if err != nil {
		at = time.Now()
	}
	record = slog.NewRecord(at, parseLevel(take("level")), cmp.Or(take("msg"), take("message")), 0)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		record.AddAttrs(slog.Any(key, fields[key]))
	}
	return record, true
}

func parseLevel(text string) slog.Level {
	if text == "FATAL" || text == "PANIC" { // of the Web UI
		return slog.LevelError
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return slog.LevelInfo
	}
	return level
}

func plain(record slog.Record, line string) string {
	if record.Message == line {
		return line
	}
	text := record.Level.String() + " " + record.Message
	record.Attrs(func(a slog.Attr) bool {
		if strings.EqualFold(a.Key, "error") {
			text += ": " + a.Value.String()
			return false
		}
		return true
	})
	return text
}
