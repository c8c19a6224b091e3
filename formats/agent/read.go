package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"regexp"
	"slices"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/lines"
)

type Format string

// MaxLineBytes is the maximum length of a line. A longer line becomes a warning note.
const MaxLineBytes = 16 << 20

type formatSpec struct {
	usage     string
	newParser func() parser
}

var formats = map[Format]formatSpec{}

// The file of each format calls register. A parser parses one log.
func register(f Format, usage string, newParser func() parser) bool {
	formats[f] = formatSpec{usage, newParser}
	return true
}

func Formats() []Format { return slices.Sorted(maps.Keys(formats)) }

// Usage describes the logs of a format for help texts, on one line without a period.
func (f Format) Usage() string { return formats[f].usage }

type parser interface {
	// parse is called with the object on each line, in order. session is the agent's own
	// session id, or "" if the line has none. An error concerns only this line.
	parse(line []byte) (session string, items []item, err error)
}

// check rejects items that a context would reject, and tool call ids longer than
// [event.MaxNameBytes].
func (i item) check() error {
	if i.Body == nil {
		return nil
	}
	id := idOf(i)
	if len(id) > event.MaxNameBytes {
		return fmt.Errorf("tool call id has %d bytes (at most %d)", len(id), event.MaxNameBytes)
	}
	if id == "" && i.tool != "" {
		return nil // pairing finds the id
	}
	return i.Validate()
}

// Read reads a log. It yields events as it reads their lines. An error is always the
// last element; it is an error of r or an unknown format.
func Read(r io.Reader, format Format) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		spec, ok := formats[format]
		if !ok {
			yield(event.Event{}, fmt.Errorf("unknown format %q (want one of %q)", format, Formats()))
			return
		}
		in := lines.NewCutting(r, MaxLineBytes)
		d := decoder{parser: spec.newParser(), ids: newIdentity(maxSeen)}
		calls := pairing{known: map[string][]knownCall{}}
		emit := func(items []item) bool {
			for _, i := range items {
				if e, err := fit(i.Event); !yield(e, err) || err != nil {
					return false
				}
			}
			return true
		}
		for in.Next() {
			for _, i := range d.decode(in) {
				if !emit(calls.add(i)) {
					return
				}
			}
		}
		if err := in.Err(); err != nil {
			yield(event.Event{}, err)
			return
		}
		emit(calls.end())
	}
}

type decoder struct {
	parser parser
	ids    identity
	// session is the newest agent session id.
	session string
	// inKey is set while plain lines belong to a PEM private key.
	inKey bool
}

func (d *decoder) decode(in *lines.Reader) []item {
	items := d.read(in)
	id := d.ids.of(d.session, in.Text)
	for i := range items {
		items[i].ClientEventID = fmt.Sprintf("%s-%d", id, i)
		if call, ok := items[i].Body.(event.ToolCall); ok && call.ToolCallID == "" {
			call.ToolCallID = items[i].ClientEventID
			items[i].Body = call
		}
	}
	return items
}

// Secrets are removed before a format sees the line.
func (d *decoder) read(in *lines.Reader) []item {
	if in.Cut > 0 {
		return []item{unread(clean(in.Text[:maxUnreadBytes]),
			fmt.Sprintf("line %d has %d bytes (at most %d)", in.Number, len(in.Text)+in.Cut, MaxLineBytes))}
	}
	text := clean(in.Text)
	switch {
	case len(text) == 0:
		return nil
	case text[0] != '{':
		return d.plain(text)
	}
	d.inKey = false
	parsed, err := d.parse(text)
	if err != nil {
		return []item{unread(text, fmt.Sprintf("line %d: %v", in.Number, err))}
	}
	var items, warnings []item
	for _, i := range parsed {
		if i.problem != "" {
			warnings = append(warnings, unread(text, fmt.Sprintf("line %d: %s", in.Number, i.problem)))
		}
		if i.Body != nil {
			items = append(items, i)
		}
	}
	return append(items, warnings...)
}

// keyLine matches the lines of a PEM private key (RFC 7468) after the first one,
// including the headers of older keys.
var keyLine = regexp.MustCompile(`^(?:[A-Za-z0-9+/=]+|[A-Za-z-]+: .*|-----END [A-Z ]*PRIVATE KEY-----)$`)

// plain converts a line that is not JSON. Of a private key that spans lines, it keeps
// only the first, redacted.
func (d *decoder) plain(text []byte) []item {
	if d.inKey && keyLine.Match(text) {
		d.inKey = !bytes.HasPrefix(text, []byte("-----END "))
		return nil
	}
	_, key, begins := bytes.Cut(text, []byte("-----BEGIN "))
	d.inKey = begins && bytes.HasSuffix(key, []byte("PRIVATE KEY-----"))
	return []item{note(event.NoteSystem, event.Redact(string(text), MaxEventBytes), nil)}
}

func clean(line []byte) []byte {
	line = bytes.ToValidUTF8(bytes.ReplaceAll(line, []byte{0}, nil), []byte("\ufffd"))
	if bytes.IndexByte(line, escape) >= 0 {
		line = []byte(ansi.Strip(string(line)))
	}
	return bytes.TrimSpace(line)
}

func (d *decoder) parse(text []byte) ([]item, error) {
	line, err := event.RedactJSON(text)
	if err == nil && len(line) > MaxEventBytes {
		line, err = shortenTo(line, maxKept, false)
	}
	if err != nil {
		return nil, err
	}
	session, items, err := d.parser.parse(line)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		if err := i.check(); err != nil {
			return nil, err
		}
	}
	d.session = cmp.Or(session, d.session)
	for n := range items {
		switch items[n].Body.(type) {
		case event.ToolCall:
			items[n].session = d.session
		case event.ToolResult:
			items[n].session = session
		}
	}
	return items, nil
}

// escape starts ANSI escape sequences (ECMA-48). It cannot occur in JSON.
const escape = 0x1b

const maxUnreadBytes = 64 << 10

func unread(line []byte, problem string) item {
	return note(event.NoteWarning, problem, extra{"line": event.Redact(string(line), maxUnreadBytes)})
}
