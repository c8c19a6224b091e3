package terminal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// unsafe contains all control characters, the boundaries of the other unsafe ranges, and escape
// sequences.
func unsafe() []string {
	var all []string
	for r := rune(0); r < 0xa0; r++ {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f {
			all = append(all, string(r))
		}
	}
	return append(all, "\u00ad", "\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff",
		"\U000e0001", "\U000e007f")
}

func TestCleanEscapesUnsafeCharacters(t *testing.T) {
	for _, s := range unsafe() {
		got := terminal.Clean("a" + s + "b")
		require.Equal(t, "ab", terminal.Strip("a"+s+"b"), "%q", s)
		require.Equal(t, got, terminal.Strip(got))
		if s != "\r" {
			require.Regexp(t, `^a(\\u[0-9a-f]{4})+b$`, got)
		}
	}
	for text, want := range map[string]string{
		"tab\tline\r\n👩‍💻 é \x1b[31m\u202e\u009b": "tab\tline\n👩‍💻 é \\u001b[31m\\u202e\\u009b",
		"\x1b]52;c;cm0gLXJm\x07":                  "\\u001b]52;c;cm0gLXJm\\u0007",
		"8 bit \x9b31m \xff":                      "8 bit \ufffd31m \ufffd",
		"می\u200cخواهم":                           "می\u200cخواهم",
	} {
		require.Equal(t, want, terminal.Clean(text))
	}
}

// The browser tests of the page have the same table.
func TestValuesShowWhatIsHidden(t *testing.T) {
	data, err := os.ReadFile("testdata/visible.json")
	require.NoError(t, err)
	var table []struct{ Text, Want string }
	require.NoError(t, json.Unmarshal(data, &table))
	for _, test := range table {
		got := terminal.Value(test.Text)
		require.Equal(t, test.Want, got, "%q", test.Text)
		require.Equal(t, got, terminal.Value(got))
		require.Equal(t, got, terminal.Clean(got), "output writers keep a value")
	}
}

func TestALineKeepsTheSpacesOfItsValues(t *testing.T) {
	require.Equal(t, `a b\u001b c`, terminal.Line(" a\n\tb\x1b \r\nc\n"))
	require.Equal(t, `rm {"path":"a  b"}`, terminal.Line(`rm {"path":"a  b"}`))
}

func TestEscapeJSONKeepsTheValue(t *testing.T) {
	for _, s := range unsafe() {
		data, err := json.Marshal(map[string]string{"a" + s: s + "b"})
		require.NoError(t, err)
		escaped := terminal.EscapeJSON(data)
		require.Equal(t, string(escaped), terminal.Clean(string(escaped)), "%q", s)
		require.JSONEq(t, string(data), string(escaped))
	}
	require.Equal(t, "{\"a\":\"\\ufffd31m\"}\n", string(terminal.EscapeJSON([]byte("{\"a\":\"\x9b31m\"}\n"))))
}

func TestWriterAcceptsTextInAnyPieces(t *testing.T) {
	text := []byte("é\u009b31m 👩‍💻 \U000e0001x\x1b[0m\xff\n")
	for _, test := range []struct {
		name string
		open func(io.Writer) *terminal.Writer
		want string
	}{
		{"for people", terminal.NewWriter, `é\u009b31m 👩‍💻 \udb40\udc01x\u001b[0m` + "\ufffd\n"},
		{"for JSON", terminal.NewJSONWriter, `é\u009b31m 👩\u200d💻 \udb40\udc01x\u001b[0m\ufffd` + "\n"},
	} {
		for size := 1; size <= len(text); size++ {
			t.Run(fmt.Sprintf("%s, %d bytes at a time", test.name, size), func(t *testing.T) {
				var out bytes.Buffer
				w := test.open(&out)
				for rest := text; len(rest) > 0; {
					n, err := w.Write(rest[:min(size, len(rest))])
					require.NoError(t, err)
					rest = rest[n:]
				}
				require.Equal(t, test.want, out.String())
			})
		}
	}
}

func TestRaw(t *testing.T) {
	var out bytes.Buffer
	w := terminal.NewWriter(&out)
	require.Same(t, &out, terminal.Raw(w))
	require.Same(t, &out, terminal.Raw(terminal.NewJSONWriter(w)))
	require.Same(t, &out, terminal.Raw(&out))
}
