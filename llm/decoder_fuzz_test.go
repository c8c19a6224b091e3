package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// FuzzNoTextIsLost sends a text as servers send it, in random pieces with random noise, and requires the text.
func FuzzNoTextIsLost(f *testing.F) {
	for seed, text := range []string{"", "Mind the gap", "12 0.5 true", "🚀🌙 café\u0000\u2028", "\"\\\n\r</think>", "{}[]data: [DONE]\n\n: error: x"} {
		for n := range uint64(24) {
			f.Add(text, uint64(seed)*100+n)
		}
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		text = strings.ToValidUTF8(text[:min(len(text), 4<<10)], "?") + "." // an empty answer can be an error
		body := newNoise(seed).stream(text)
		client := &http.Client{Transport: canned{http.StatusOK, body}}
		target, err := llm.New(llm.Options{HTTPClient: client, AllowLoopback: true}).Resolve(reducer.ProviderConfig{ProviderID: "ollama", Model: "m"})
		require.NoError(t, err)
		var streamed strings.Builder
		result, err := target.Stream(t.Context(), hello, func(d llm.Delta) { streamed.WriteString(d.Text) })
		require.NoError(t, err, "%q", body)
		require.Equal(t, text, result.Text, "%q", body)
		require.Equal(t, text, streamed.String())
		require.Equal(t, "stop", result.FinishReason)
	})
}

// noise is a source of legal and illegal ways to send a stream.
type noise struct{ *rand.Rand }

func newNoise(seed uint64) noise { return noise{rand.New(rand.NewPCG(seed, 1))} }

func (n noise) oneOf(values ...string) string { return values[n.IntN(len(values))] }

func (n noise) stream(text string) string {
	var b strings.Builder
	b.WriteString(n.oneOf("", "", "\uFEFF", "\n", "\uFEFF\n\n"))
	lineEnd := n.oneOf("\n", "\n", "\r\n", "\r")
	eventEnd := strings.Repeat(lineEnd, 1+n.IntN(3))
	add := func(chunk string) {
		if n.IntN(4) == 0 && lineEnd != eventEnd {
			var indented bytes.Buffer
			_ = json.Indent(&indented, []byte(chunk), "", "\t")
			chunk = strings.ReplaceAll(indented.String(), "\n", lineEnd+"data:")
		}
		b.WriteString(n.oneOf("data:", "data: ", "data:  ", "id: 1"+lineEnd+"data: ", "event: message"+lineEnd+"data:") + chunk + eventEnd)
	}
	for _, piece := range n.pieces(text) {
		for n.IntN(3) == 0 {
			b.WriteString(n.oneOf(": hm", "data:", "data", "data: alive", "event: ping", "retry: 9", "unknown: field", "", "data: 5", "data: {\"type\":\"ping\"}") + eventEnd)
			b.WriteString(lineEnd) // ends an event that has only a name
		}
		add(n.chunk(piece))
	}
	add(`{"choices":[{"index":0,"delta":` + n.oneOf(`{}`, `null`, `{"content":null}`, `{"content":""}`) + `,"finish_reason":"stop"}]}`)
	b.WriteString(n.oneOf("", "data: [DONE]"+eventEnd, "data:[DONE]", ": end"))
	return b.String()
}

// pieces returns the content fields of chunks as JSON. They can split a character.
func (n noise) pieces(text string) (pieces []string) {
	var b strings.Builder
	end := func() {
		pieces = append(pieces, `"`+b.String()+`"`)
		b.Reset()
	}
	size := 1 + n.IntN(12)
	for _, r := range text {
		units := utf16.Encode([]rune{r})
		switch {
		case r < ' ' || r == '"' || r == '\\' || n.IntN(3) == 0:
			for _, unit := range units {
				fmt.Fprintf(&b, `\u%04x`, unit)
				if n.IntN(size) == 0 {
					end()
				}
			}
		default:
			for _, c := range utf8.AppendRune(nil, r) {
				b.WriteByte(c)
				if n.IntN(size) == 0 {
					end()
				}
			}
		}
	}
	end()
	return pieces
}

func (n noise) chunk(content string) string {
	var text string
	isWhole := json.Unmarshal([]byte(content), &text) == nil && utf8.ValidString(text) && !strings.Contains(text, "\uFFFD")
	if _, err := strconv.ParseInt(text, 10, 64); isWhole && err == nil && json.Valid([]byte(text)) && n.IntN(2) == 0 {
		content = text
	}
	switch n.IntN(6) {
	case 0:
		content = `[{"type":"text","text":` + content + `}]`
	case 1:
		content = `{"text":` + content + `}`
	case 2:
		content = `[` + content + `,{"type":"new"},null]`
	}
	delta := `{"role":"assistant","content":` + content + n.oneOf("", `,"refusal":null`, `,"tool_calls":[]`, `,"tool_calls":null`, `,"audio":{"content":"x"}`, `,"annotations":[[[{}]]]`) + `}`
	index := n.oneOf(`"index":0,`, `"index":"0",`, `"index":null,`, ``)
	choices := `[{` + index + `"delta":` + delta + n.oneOf("", `,"finish_reason":null`, `,"finish_reason":""`, `,"logprobs":{"content":[{"token":"x"}]}`) + `}` + n.oneOf("", "", `,{"index":7,"delta":{"content":"NOISE"}}`) + `]`
	if text == "" {
		choices = strings.Replace(choices, "NOISE", "", 1) // the first choice with a text would be the other one
	}
	return `{` + n.oneOf("", `"id":7,`, `"error":null,`, `"usage":"none",`, `"created":{"a":[1]},`, `"model":["m"],`) + `"choices":` + choices + n.oneOf("", `,"error":{}`, `,"usage":null`, `,"x":"data: {}"`) + `}`
}

// FuzzDecodedJSON compares the reader of JSON with encoding/json.
func FuzzDecodedJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,true,null,"x\"\\\/\b\f\n\r\t\u0041\ud83d\ude80\ud83d"],"b":{"a":{}},"a":[]}`, ` [ ] `, `{"a" : [ {} , [ ] ] }`, `"\udc00\ud800"`, `[`, `{"a"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if !json.Valid(data) || !utf8.Valid(data) || decoder.Decode(&want) != nil {
			llm.DecodeJSON(data)
			return
		}
		require.True(t, reflect.DeepEqual(withoutReplacements(want), withoutReplacements(llm.DecodeJSON(data))), "%q", data)
	})
}

// withoutReplacements removes the replacements of what is not UTF-8, of which the two readers write different numbers.
func withoutReplacements(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "\uFFFD", "")
	case []any:
		elements := []any{}
		for _, element := range v {
			elements = append(elements, withoutReplacements(element))
		}
		return elements
	case map[string]any:
		fields := map[string]any{}
		for name, field := range v {
			fields[strings.ReplaceAll(name, "\uFFFD", "")] = withoutReplacements(field)
		}
		return fields
	}
	return v
}

// An answer must not take more time than in proportion to its size, whatever it contains.
func TestNoAnswerTakesLong(t *testing.T) {
	for name, event := range map[string]string{
		"nested arrays":     `{"choices":[{"delta":{"content":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}]}`,
		"nested objects":    `{"choices":[{"delta":{"content":` + strings.Repeat(`{"text":`, 9000) + `""` + strings.Repeat("}", 9000) + `}}]}`,
		"many parts":        `{"choices":[{"delta":{"content":["a"` + strings.Repeat(`,"a"`, 300_000) + `]}}]}`,
		"many calls":        `{"choices":[{"delta":{"tool_calls":[{}` + strings.Repeat(`,{"function":{"name":"f","arguments":"{}"}}`, 50_000) + `]}}]}`,
		"many choices":      `{"choices":[{}` + strings.Repeat(`,{"index":1,"finish_reason":"stop"}`, 50_000) + `]}`,
		"a finish reason":   `{"choices":[{"finish_reason":"` + strings.Repeat(":", 1<<20) + `"}]}`,
		"arguments in text": `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"` + strings.Repeat(`{}`, 200_000) + `"}}]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, llmtest.Raw(sse, "data: "+event+"\n\n", llmtest.Chunk(`{}`, "stop")))
			_, err := withTools(t, model, reducer.ProviderConfig{}).Stream(within(t), hello, nil)
			if err != nil {
				require.NotContains(t, err.Error(), "timeout")
			}
		})
	}
}
