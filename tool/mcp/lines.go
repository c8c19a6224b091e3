package mcp

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/time/rate"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/secretref"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

const (
	maxLine   = 1024 // bytes of a logged line
	lineBurst = 20   // lines; further lines are logged at one per second
)

// lineWriter logs lines without control characters and secrets. It drops lines that arrive too
// fast.
type lineWriter struct {
	log     func(line string, dropped int)
	scrub   func(string) string
	limiter *rate.Limiter

	mu      sync.Mutex
	line    []byte // the beginning of an incomplete line
	dropped int
}

func newLineWriter(scrub func(string) string, log func(line string, dropped int)) *lineWriter {
	return &lineWriter{log: log, scrub: scrub, limiter: rate.NewLimiter(1, lineBurst)}
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := text; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		// Secrets are found only in whole lines, so the buffer holds more than is logged.
		if room := secretref.MaxBytes - len(w.line); room > 0 {
			w.line = append(w.line, line[:min(len(line), room)]...)
		}
		if complete {
			w.end()
		}
		rest = after
	}
	return len(text), nil
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
}

func (w *lineWriter) end() {
	line := cleanLine(w.scrub(string(w.line)))
	w.line = w.line[:0]
	if line == "" {
		return
	}
	if !w.limiter.Allow() {
		w.dropped++
		return
	}
	w.log(event.Redact(line, maxLine), w.dropped)
	w.dropped = 0
}

// cleanLine returns a text in one line, without escape sequences and with escapes for characters that people cannot see.
func cleanLine(text string) string {
	return terminal.Line(ansi.Strip(strings.ToValidUTF8(text, "\uFFFD")))
}

// clean returns at most max bytes of untrusted text, without control and invisible characters.
func clean(text string, max int) string {
	return truncate(strings.TrimSpace(terminal.Strip(strings.ToValidUTF8(text, "\uFFFD"))), max)
}

func truncate(text string, max int) string {
	const mark = "…"
	if len(text) <= max {
		return text
	}
	end := max - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
