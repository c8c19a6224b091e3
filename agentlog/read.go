package agentlog

import (
	"bufio"
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
)

// Format is how an agent writes its log.
type Format string

// parsers makes a parser for a log of each format.
var parsers = map[Format]func() parser{
	Droid:  func() parser { return &droid{} },
	Claude: func() parser { return &claude{} },
}

// Formats lists the formats.
func Formats() []Format { return slices.Sorted(maps.Keys(parsers)) }

// parser knows one format. It reads the lines of one log, in order.
type parser interface {
	// parse says what an object on a line means; the session is the agent's id of
	// its own, "" when the line has none. An error is about that line alone.
	parse(line []byte) (session string, items []item, err error)
}

// check refuses what no context would take, or what a cut would give another id.
func (i item) check() error {
	id := idOf(i)
	if len(id) > event.MaxNameBytes {
		return fmt.Errorf("the id of a tool call has %d bytes, at most %d are known of one", len(id), event.MaxNameBytes)
	}
	if id == "" && i.tool != "" {
		return nil // it is found later
	}
	return i.Validate()
}

// Read reads a log. The events come as soon as their lines do; an error comes last
// and alone, and is that of r, or an unknown format.
func Read(r io.Reader, format Format) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		newParser, ok := parsers[format]
		if !ok {
			yield(event.Event{}, fmt.Errorf("format %q: want one of %q", format, Formats()))
			return
		}
		in := lines{reader: bufio.NewReaderSize(r, 64<<10)}
		d := decoder{parser: newParser(), ids: newIdentity(maxSeen)}
		calls := pairing{known: map[string]bool{}}
		tell := func(items []item) bool {
			for _, i := range items {
				if e, err := fit(i.Event); !yield(e, err) || err != nil {
					return false
				}
			}
			return true
		}
		for in.next() {
			for _, i := range d.decode(&in) {
				if !tell(calls.add(i)) {
					return
				}
			}
		}
		if err := in.failed(); err != nil {
			yield(event.Event{}, err)
			return
		}
		tell(calls.end())
	}
}

// decoder makes items of lines and gives them their ids.
type decoder struct {
	parser parser
	ids    identity
	// session is the newest that a line named.
	session string
	// inKey says that the plain lines before this one begin a private key.
	inKey bool
}

func (d *decoder) decode(in *lines) []item {
	items := d.read(in)
	id := d.ids.of(d.session, in.text)
	for i := range items {
		items[i].ClientEventID = fmt.Sprintf("%s-%d", id, i)
		if call, ok := items[i].Body.(event.ToolCall); ok && call.ToolCallID == "" {
			call.ToolCallID = items[i].ClientEventID
			items[i].Body = call
		}
	}
	return items
}

// read says what a line means. Secrets are gone before a format sees it.
func (d *decoder) read(in *lines) []item {
	if in.cut > 0 {
		return []item{unread(clean(in.text[:maxUnreadBytes]),
			fmt.Sprintf("line %d has %d bytes more than the %d that are read", in.number, in.cut, MaxLineBytes))}
	}
	text := clean(in.text)
	switch {
	case len(text) == 0:
		return nil
	case text[0] != '{':
		return d.plain(text)
	}
	d.inKey = false
	items, err := d.parse(text)
	if err != nil {
		return []item{unread(text, fmt.Sprintf("line %d: %v", in.number, err))}
	}
	return items
}

// ofKey are the lines of a private key in PEM (RFC 7468) behind its first, with the
// headers that older ones have.
var ofKey = regexp.MustCompile(`^(?:[A-Za-z0-9+/=]+|[A-Za-z-]+: .*|-----END [A-Z ]*PRIVATE KEY-----)$`)

// plain is a line of no format. A private key is over several, of which the first
// says that it was removed.
func (d *decoder) plain(text []byte) []item {
	if d.inKey && ofKey.Match(text) {
		d.inKey = !bytes.HasPrefix(text, []byte("-----END "))
		return nil
	}
	_, key, begins := bytes.Cut(text, []byte("-----BEGIN "))
	d.inKey = begins && bytes.HasSuffix(key, []byte("PRIVATE KEY-----"))
	return []item{note(event.NoteSystem, event.Redact(string(text), MaxEventBytes), nil)}
}

// clean is a line without what no text has: colours, NUL, and bytes that are not
// UTF-8.
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
	return items, nil
}

// escape begins the codes of colours (ECMA-48). No JSON has it.
const escape = 0x1b

// maxUnreadBytes is how much is kept of a line that nobody understood.
const maxUnreadBytes = 64 << 10

// unread is a warning about a line that nobody understood, with the line.
func unread(line []byte, problem string) item {
	return note(event.NoteWarning, problem, extra{"line": event.Redact(string(line), maxUnreadBytes)})
}
