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
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/lines"
)

// MaxLineBytes is the maximum length of a line. A longer line becomes a warning note.
const MaxLineBytes = 16 << 20

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

// Read reads a log of a format, "" for the one that its first lines have. It yields events as it reads
// their lines. An error is always the last element; it is [ErrUnrecognized] before the first event, an
// error of r, or an unknown format.
func Read(r io.Reader, format Format) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if _, ok := formats[format]; !ok && format != "" {
			yield(event.Event{}, fmt.Errorf("unknown format %q (want one of %q)", format, Formats()))
			return
		}
		format, r, err := recognize(r, format)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		in := lines.NewCutting(r, MaxLineBytes)
		d := decoder{parser: format.newParser(), ids: newIdentity(maxSeen), skipped: map[string]int{}}
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
		_ = emit(d.end()) && emit(calls.end())
	}
}

type decoder struct {
	parser  parser
	ids     identity
	objects objects
	// session is the newest agent session id.
	session string
	// inKey is set while plain lines belong to a PEM private key.
	inKey bool
	// skipped counts the lines and blocks that became no event, by kind.
	skipped map[string]int
}

func (d *decoder) decode(in *lines.Reader) []item {
	if in.Cut > 0 {
		problem := fmt.Sprintf("line %d has %d bytes (at most %d)", in.Number, len(in.Text)+in.Cut, MaxLineBytes)
		return d.named(in.Text, unread(validUTF8(clean(in.Text[:maxUnreadBytes])), problem))
	}
	found, rest := d.objects.split(clean(in.Text))
	out := d.abandoned(false)
	for _, object := range found {
		out = append(out, d.object(validUTF8(object), in.Number)...)
	}
	rest = validUTF8(rest)
	switch {
	case len(rest) == 0:
	case rest[0] != '{':
		out = append(out, d.named(rest, d.plain(rest)...)...)
	case in.Unended:
		d.skip("incomplete last line")
	default:
		out = append(out, d.named(rest, unread(rest, fmt.Sprintf("line %d: invalid JSON", in.Number)))...)
	}
	return out
}

// end returns the items at the end of the log.
func (d *decoder) end() []item {
	out := d.abandoned(true)
	if len(d.skipped) == 0 {
		return out
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(d.skipped)) {
		kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, d.skipped[kind]))
	}
	content := "not recorded: " + strings.Join(kinds, ", ")
	summary := d.named([]byte(content), note(event.NoteSystem, content, extra{Skipped: d.skipped}))
	summary[0].ClientEventID += "-skipped"
	return append(out, summary...)
}

func (d *decoder) abandoned(atEnd bool) []item {
	head := validUTF8(d.objects.abandoned(atEnd))
	if len(head) == 0 {
		return nil
	}
	return d.named(head, unread(head, "line broken off by another one"))
}

// named gives the items of a line their client event ids.
func (d *decoder) named(line []byte, items ...item) []item {
	return withIDs(d.ids.of(d.session, line), items)
}

// withIDs numbers the items of a line, and omits those without a Body.
func withIDs(id string, items []item) []item {
	var out []item
	for n, i := range items {
		if i.Body == nil {
			continue
		}
		i.ClientEventID = fmt.Sprintf("%s-%d", id, n)
		if call, ok := i.Body.(event.ToolCall); ok && call.ToolCallID == "" {
			call.ToolCallID = i.ClientEventID
			i.Body = call
		}
		out = append(out, i)
	}
	return out
}

// kindOfLine matches the names that skipped lines may be counted by; others are "other".
var kindOfLine = regexp.MustCompile(`^[A-Za-z0-9_./ -]{1,64}$`)

// maxKinds is the maximum number of names.
const maxKinds = 50

func (d *decoder) skip(kind string) {
	if _, ok := d.skipped[kind]; !ok && (len(d.skipped) >= maxKinds || !kindOfLine.MatchString(kind)) {
		kind = "other"
	}
	d.skipped[kind]++
}

// object converts a JSON object. Secrets are removed before a format sees it.
func (d *decoder) object(text []byte, number int) []item {
	d.inKey = false
	line, err := event.RedactJSON(text)
	if err == nil && len(line) > MaxEventBytes {
		line, err = shortenTo(line, maxKept, false)
	}
	if err != nil {
		return d.named(text, unread(text, fmt.Sprintf("line %d: %v", number, err)))
	}
	var name struct{ UUID string }
	_ = decode(line, &name) // parse returns the error
	id := ""
	if name.UUID != "" {
		var isRepeated bool
		if id, isRepeated = d.ids.ofUUID(name.UUID); isRepeated {
			d.skip("repeated line")
			return nil
		}
	}
	items, err := d.parse(line)
	if err != nil {
		items = []item{unread(text, fmt.Sprintf("line %d: %v", number, err))}
	}
	var warnings []item
	for _, i := range items {
		if i.problem != "" {
			warnings = append(warnings, unread(text, fmt.Sprintf("line %d: %s", number, i.problem)))
		}
		if i.skipped != "" {
			d.skip(i.skipped)
		}
	}
	items = append(items, warnings...)
	if id == "" {
		return d.named(text, items...)
	}
	return withIDs(id, items)
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

// clean removes what agents print around and between objects. The parts of a line that is split by another
// one may be no UTF-8.
func clean(line []byte) []byte {
	line = bytes.ReplaceAll(line, []byte{0}, nil)
	if bytes.IndexByte(line, escape) >= 0 {
		line = []byte(ansi.Strip(string(line)))
	}
	return line
}

func validUTF8(text []byte) []byte { return bytes.TrimSpace(bytes.ToValidUTF8(text, []byte("\ufffd"))) }

func (d *decoder) parse(line []byte) ([]item, error) {
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

// Skipped is the extra field of the note at the end of a log: the number of lines and blocks that became
// no event, by kind.
const Skipped = "skipped"

// escape starts ANSI escape sequences (ECMA-48). It cannot occur in JSON.
const escape = 0x1b

const maxUnreadBytes = 64 << 10

func unread(line []byte, problem string) item {
	return note(event.NoteWarning, problem, extra{"line": event.Redact(string(line), maxUnreadBytes)})
}
