package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// scan returns the messages in an output that is written in pieces of a size.
func scan(output string, size int) (messages []string) {
	s := mcp.NewScanner(func(object []byte) bool {
		var m struct{ JSONRPC string }
		if json.Unmarshal(object, &m) != nil || m.JSONRPC != "2.0" {
			return false
		}
		messages = append(messages, string(object))
		return true
	})
	for rest := output; rest != ""; {
		n := min(size, len(rest))
		_, _ = s.Write([]byte(rest[:n]))
		rest = rest[n:]
	}
	s.End()
	return messages
}

// Noise has brackets, quotes and escapes in any order, but no message.
func TestNoMessageBetweenNoiseIsLost(t *testing.T) {
	noise := rapid.StringOfN(rapid.RuneFrom([]rune("ab {}[]\",:\\\r\n\t1é\ufeff\x00")), 0, 12, -1)
	text := rapid.StringOfN(rapid.RuneFrom([]rune("a{}[]\"\\\n ")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		var output strings.Builder
		var want []string
		for i := range rapid.IntRange(1, 4).Draw(t, "messages") {
			message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": i, "result": text.Draw(t, "text")})
			require.NoError(t, err)
			want = append(want, string(message))
			before := noise.Draw(t, "noise")
			if strings.Count(before, "\\") > 0 && strings.Count(before, "\"")%2 == 1 {
				before = strings.ReplaceAll(before, "\\", "/") // a string of the noise would end in the message
			}
			output.WriteString(before + string(message) + rapid.SampledFrom([]string{"\n", "\r\n", " \n", "\n\n"}).Draw(t, "end"))
		}
		for _, size := range []int{1, 7, 1 << 20} {
			require.Equal(t, want, scan(output.String(), size), output.String())
		}
	})
}

func TestAMessageIsFoundBeforeTheLineEnds(t *testing.T) {
	var found int
	s := mcp.NewScanner(func([]byte) bool { found++; return true })
	_, _ = s.Write([]byte(`ready {"jsonrpc":"2.0"}`))
	require.Equal(t, 1, found)
}

func TestHostileOutputIsReadInLinearTime(t *testing.T) {
	for name, output := range map[string]string{
		"brackets":             strings.Repeat("{", 1<<19),
		"deep objects":         strings.Repeat(`{"a":`, 1<<17),
		"lines":                strings.Repeat("{\n", 1<<17),
		"strings":              strings.Repeat(`{"`, 1<<17) + "\n",
		"small objects":        strings.Repeat(`{}`, 1<<17),
		"an endless line":      strings.Repeat("x", 40<<20),
		"objects in an object": `{"a":[` + strings.Repeat("{\"b\":1},\n", 1<<15),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			message := `{"jsonrpc":"2.0"}`
			require.Equal(t, []string{message}, scan(output+"\n"+message+"\n", 1<<16))
			require.Less(t, time.Since(began), 20*time.Second) // quadratic time would be minutes
		})
	}
}

func FuzzScanner(f *testing.F) {
	for _, seed := range []string{"{", `{"a":"`, "[{\n", "\ufeff{}", `{"jsonrpc":"2.0"}{`, "{\n\"a\":1,\n{\"jsonrpc\":\"2.0\"}\n"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, noise string, size int) {
		if strings.Contains(noise, "jsonrpc") || strings.ContainsAny(noise, `"\`) {
			return // a string of the noise may contain the message
		}
		if size < 1 {
			size = 1
		}
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d}`, size)
		found := scan(noise+message+"\n", size)
		require.Equal(t, []string{message}, found, "%q", noise)
	})
}
