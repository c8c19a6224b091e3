package markdown_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/markdown"
)

// tagged replaces control sequences by readable tags: <1;4> is bold and underlined, <> is plain.
func tagged(rows []string) []string {
	sequence := regexp.MustCompile(`\x1b\[([0-9;]*)m`)
	tagged := []string{}
	for _, row := range rows {
		tagged = append(tagged, sequence.ReplaceAllString(row, "<$1>"))
	}
	return tagged
}

func rendered(width int, pieces ...string) []string {
	r := markdown.Renderer{Width: width}
	var rows []string
	for _, piece := range pieces {
		rows = append(rows, r.Write(piece)...)
		r.Tail()
	}
	return append(rows, r.End()...)
}

func TestRendering(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"a paragraph":               {"one two three four", []string{"one two three four"}},
		"lines":                     {"one\n\ntwo\n", []string{"one", "", "two"}},
		"wrapped bold":              {"a **very long bold text** b", []string{"a <1>very long bold<>", "<1>text<> b"}},
		"emphasis":                  {"*a* _b_ **c** ***d***", []string{"<3>a<> <3>b<> <1>c<> <1;3>d<>"}},
		"nested emphasis":           {"**a *b* c**", []string{"<1>a <><1;3>b<><1> c<>"}},
		"no emphasis":               {"2 * 3 * 4 2*3*4 a_b_c\n*x\\*y ** __init__ **", []string{"2 * 3 * 4 2*3*4", "a_b_c", "*x*y ** __init__", "**"}},
		"code":                      {"`a *b*` c", []string{"<36>a *b*<> c"}},
		"code without an end":       {"a ` b", []string{"a ` b"}},
		"a marker in code":          {"**a `**` b**", []string{"<1>a <><1;36>**<><1> b<>"}},
		"headings":                  {"# One\n### Three\n#none", []string{"<1>One<>", "<1>Three<>", "#none"}},
		"a list":                    {"- one\n* two and three four\n  + deep", []string{"• one", "• two and three", "  four", "  • deep"}},
		"an ordered list":           {"9. one two three four\n10) ten", []string{"9. one two three", "   four", "10) ten"}},
		"a quotation":               {"> one two three four\n>> deep", []string{"<2>│<> one two three", "<2>│<> four", "<2>│<> <2>│<> deep"}},
		"a rule":                    {"---", []string{"<2>---<>"}},
		"a link":                    {"[a](http://b/c_(d)) ![e](f) [g](g) [1] x", []string{"<4>a<><2> (http://b/c_(d))<>", "<4>e<><2> (f)<> <4>g<> [1] x"}},
		"a block of code":           {"```go\n  x := *y\n# no title\n```\n**z**", []string{"<2>```go<>", "<36>  x := *y<>", "<36># no title<>", "<2>```<>", "<1>z<>"}},
		"a fence in a block":        {"````\n```\n````\n*a*", []string{"<2>````<>", "<36>```<>", "<2>````<>", "<3>a<>"}},
		"a table":                   {"|name|x|\n|---|:-:|\n| **x** | a\\|b |\nz", []string{"<1>name<><2> │ <><1>x<>", "<1>x<>   <2> │ <>a|b", "z"}},
		"a table that does not fit": {"|a|b|\n|-|-|\n|1234567890|1234567|", []string{"|a|b|", "|-|-|", "|1234567890|123456", "7|"}},
		"a line with a bar":         {"| not a table\nx", []string{"| not a table", "x"}},
		"control characters":        {"a\x1b[2J *b\x1b[0m\u202e*", []string{`a\u001b[2J`, `<3>b\u001b[0m\u202e<>`}},
		"wide characters":           {"- 你好 你好 你好 你好", []string{"• 你好 你好 你好", "  你好"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, tagged(rendered(18, test.text)))
			require.Equal(t, test.want, tagged(rendered(18, strings.Split(test.text, "")...)), "by character")
		})
	}
}

func TestRowsAreFinalOnceTheyCannotChange(t *testing.T) {
	r := markdown.Renderer{Width: 18}
	require.Len(t, r.Write(strings.Repeat("word ", 30)), 5, "three words a row")
	require.Len(t, r.Write("**bold "+strings.Repeat("word ", 18)), 4, "up to the row with an undecided marker")
	require.Len(t, r.Tail(), 5)
	require.Equal(t, []string{"word word word", "<1>bold word word<>"}, tagged(append(r.Write("end** "), r.End()...))[:2])
}

func TestAPlainTextIsOnlyWrapped(t *testing.T) {
	r := markdown.Renderer{Width: 18, IsPlain: true}
	const text = "# **one** `two` [three](four)\n| a | b |\n|---|---|\n```\n  x\n"
	require.Equal(t, strings.Split(ansi.Wrap(strings.TrimSuffix(text, "\n"), 18, ""), "\n"), r.Write(text))
	require.True(t, r.IsEmpty())
}

func TestALongLineFollowsItsTable(t *testing.T) {
	r := markdown.Renderer{Width: 18}
	require.Empty(t, r.Write("|a|\n|-|\n"))
	require.Equal(t, []string{"<1>a<>", "word word word"}, tagged(r.Write(strings.Repeat("word ", 20)))[:2])
}

func TestABlockOfCodeContinuesAfterAnEnd(t *testing.T) {
	r := markdown.Renderer{Width: 18}
	require.Equal(t, []string{"<2>```<>"}, tagged(r.Write("```\na")))
	require.Equal(t, []string{"<36>a<>"}, tagged(r.End()))
	require.Equal(t, []string{"<36>*b*<>", "<2>```<>"}, tagged(r.Write("*b*\n```\n")))
}

func TestTheWidthMayChangeWithinALine(t *testing.T) {
	const text = "one **two** three "
	r := markdown.Renderer{Width: 80}
	var rows []string
	for i := range 300 {
		r.Width = 20 + i%60
		rows = append(rows, r.Write(text)...)
	}
	rows = append(rows, r.End()...)
	require.Equal(t, strings.Fields(strings.Repeat("one two three ", 300)), strings.Fields(ansi.Strip(strings.Join(rows, "\n"))))
}

func FuzzPiecesRenderLikeTheWhole(f *testing.F) {
	for _, seed := range []string{
		"# a\n- **b `c** d` e*f*_g_\n> [h](i)![j](k)\n", "| a | b |\n|:-:|\n| `|` | c\n```x\n  y\n```", "a ***b** c* `` d ` e ``` f",
		strings.Repeat("a **b `c** ", 60), strings.Repeat("*a_ [b](", 80), "*" + strings.Repeat("x ", 148) + "x*** y",
		strings.Repeat("word *a* `b` [c](d) **e** 你好 ", 150),
	} {
		f.Add(seed, uint64(3), 20)
	}
	f.Fuzz(func(t *testing.T, text string, cuts uint64, width int) {
		if width < 10 || width > 200 || len(text) > 10_000 {
			t.Skip()
		}
		text = strings.ToValidUTF8(text, "")
		var pieces []string
		for rest := []rune(text); len(rest) > 0; {
			cuts = cuts*6364136223846793005 + 1442695040888963407
			n := min(len(rest), 1+int(cuts>>59))
			pieces, rest = append(pieces, string(rest[:n])), rest[n:]
		}
		whole := rendered(width, text)
		require.Equal(t, tagged(whole), tagged(rendered(width, pieces...)))
		for _, row := range whole {
			require.LessOrEqual(t, ansi.StringWidth(row), width)
		}
		stripped := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(strings.Join(whole, "\n"), "")
		require.Equal(t, terminal.Clean(stripped), stripped)
		// Letters are never markers, and are shown except in the titles of links.
		letters := func(text string) string {
			return string(slices.DeleteFunc([]rune(text), func(c rune) bool { return c < 'a' || c > 'z' }))
		}
		if !strings.ContainsAny(text, "\"[") {
			require.Equal(t, letters(text), letters(stripped))
		}
	})
}

func TestLinesOfMarkersTakeLinearTime(t *testing.T) {
	for _, piece := range []string{"*`", "[", "*a ", "**a", "`*` ", "[a](", "_a`", "![[", "**a`b`", "\\*", "word "} {
		r := markdown.Renderer{Width: 10}
		began := time.Now()
		for part := range slices.Chunk([]byte(strings.Repeat(piece, 8_000/len(piece))), 100) {
			r.Write(string(part))
			r.Tail()
		}
		r.End()
		require.Less(t, time.Since(began), time.Minute, piece)
	}
}
