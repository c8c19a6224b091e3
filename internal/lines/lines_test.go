package lines_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/lines"
)

// read returns each line with its number, the omitted bytes and the error at the end.
func read(r *lines.Reader) (all []string) {
	for r.Next() {
		line := fmt.Sprintf("%d %q", r.Number, r.Text)
		if r.Cut > 0 {
			line += fmt.Sprintf(" cut %d", r.Cut)
		}
		all = append(all, line)
	}
	if err := r.Err(); err != nil {
		all = append(all, err.Error())
	}
	return all
}

func TestLines(t *testing.T) {
	const max = 100_000 // more than a buffer
	long := strings.Repeat("x", max)
	gone := iotest.ErrReader(errors.New("gone"))
	for _, c := range []struct {
		name  string
		in    io.Reader
		whole []string
		cut   []string // nil: like whole
	}{
		{"nothing", strings.NewReader(""), nil, nil},
		{"a line", strings.NewReader("a\n"), []string{`1 "a"`}, nil},
		{"a last line without its end", strings.NewReader("a\nb"), []string{`1 "a"`, `2 "b"`}, nil},
		{"blank lines", strings.NewReader("\n\na\n\n"), []string{`1 ""`, `2 ""`, `3 "a"`, `4 ""`}, nil},
		{"lines of Windows", strings.NewReader("\ufeffa\r\nb\r\n"), []string{`1 "a"`, `2 "b"`}, nil},
		{"a byte order mark in another line", strings.NewReader("a\n\ufeffb"), []string{`1 "a"`, `2 "\ufeffb"`}, nil},
		{"the longest line", strings.NewReader(long + "\nb"), []string{fmt.Sprintf("1 %q", long), `2 "b"`}, nil},
		{
			"a longer line", strings.NewReader("a\n" + long + "yz\nb\n"),
			[]string{`1 "a"`, "line 2: line exceeds 100000 bytes"},
			[]string{`1 "a"`, fmt.Sprintf("2 %q cut 2", long), `3 "b"`},
		},
		{
			"an error in a line", io.MultiReader(strings.NewReader("a\nb"), gone),
			[]string{`1 "a"`, "line 2: read: gone"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := io.ReadAll(c.in)
			again := func() io.Reader { return strings.NewReader(string(text)) }
			if err != nil {
				again = func() io.Reader { return io.MultiReader(strings.NewReader(string(text)), gone) }
			}
			for _, chunk := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader,
			} {
				require.Equal(t, c.whole, read(lines.New(chunk(again()), max)))
				want := c.cut
				if want == nil {
					want = c.whole
				}
				require.Equal(t, want, read(lines.NewCutting(chunk(again()), max)))
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestALineThatIsTooLongIsAnErrorBeforeItsEnd(t *testing.T) {
	require.Equal(t, []string{"line 1: line exceeds 100000 bytes"}, read(lines.New(endless{}, 100_000)))
}

func TestALineKeepsItsBytesWhileOthersAreRead(t *testing.T) {
	r := lines.New(strings.NewReader("first\nsecond\n"), 100)
	require.True(t, r.Next())
	first := r.Text
	require.True(t, r.Next())
	require.Equal(t, "first", string(first))
}
