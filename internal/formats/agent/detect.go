package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/internal/lines"
)

// ErrUnrecognized is the error of a log that is not of the format, or of any.
var ErrUnrecognized = errors.New("log not recognized")

// At most this much of a log is read to recognize it.
const (
	maxProbedObjects = 100
	maxProbedBytes   = 32 << 20
)

// probe has the fields of an object by which formats are told apart.
type probe struct {
	Type   string
	fields map[string]json.RawMessage
}

func (p probe) has(field string) bool { return isSet(p.fields[field]) }

func probeOf(line []byte) (probe, bool) {
	p := probe{}
	if json.Unmarshal(line, &p.fields) != nil || p.fields == nil {
		return p, false
	}
	_ = json.Unmarshal(p.fields["type"], &p.Type) // "" if it is no text
	return p, true
}

// recognize returns the format of a log and a reader of all of it. want is the expected format; "": any. The
// first object that only one format has decides. Of the expected format, a log may consist of plain text.
func recognize(r io.Reader, want Format) (Format, io.Reader, error) {
	var read bytes.Buffer
	in := lines.NewCutting(io.TeeReader(r, &read), MaxLineBytes)
	whole := func() io.Reader { return io.MultiReader(&read, r) }
	objects, isKnown := 0, false
	for objects < maxProbedObjects && read.Len() < maxProbedBytes && in.Next() {
		line := validUTF8(clean(in.Text))
		p, ok := probeOf(line)
		if !ok {
			continue
		}
		objects++
		for _, f := range Formats() {
			switch {
			case !f.recognizes(p):
			case want == "" || want == f:
				return f, whole(), nil
			default:
				return "", nil, fmt.Errorf("%w: not of format %s (it is of format %s)", ErrUnrecognized, want, f)
			}
		}
		isKnown = isKnown || want != "" && knows(want, line)
	}
	if err := in.Err(); err != nil {
		return "", nil, err
	}
	switch {
	case want == "":
		return "", nil, fmt.Errorf("%w (want %s)", ErrUnrecognized, describeFormats())
	case objects > 0 && !isKnown:
		return "", nil, fmt.Errorf("%w: not of format %s (want %s)", ErrUnrecognized, want, want.Usage())
	}
	return want, whole(), nil
}

// knows reports whether a format converts the line to an event.
func knows(f Format, line []byte) bool {
	_, items, _ := f.newParser().parse(line)
	for _, i := range items {
		if i.Body != nil {
			return true
		}
	}
	return false
}

func describeFormats() string {
	var all []string
	for _, f := range Formats() {
		all = append(all, f.Usage())
	}
	return strings.Join(all, "; ")
}
