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

// styled returns the characters with their styles, except spaces and the bars of quotations.
func styled(rows []string) (out []string) {
	for _, row := range rows {
		style := ""
		for _, part := range regexp.MustCompile(`\x1b\[[0-9;]*m|.`).FindAllString(row, -1) {
			switch {
			case strings.HasPrefix(part, "\x1b"):
				style = strings.TrimPrefix(part, ansi.ResetStyle)
			case strings.TrimSpace(part) != "" && part != "│":
				out = append(out, style+part)
			}
		}
	}
	return out
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
		"emphasis":                  {"*a* _b_ **c** __d__ ***e*** ~~f~~", []string{"<3>a<> <3>b<> <1>c<> <1>d<> <1;3>e<> <9>f<>"}},
		"nested emphasis":           {"**a *b* c** *d **e***", []string{"<1>a <><1;3>b<><1> c<> <3>d <><1;3>e<>"}},
		"no emphasis":               {"2 * 3 * 4 a_b_c *x\\*y **", []string{"2 * 3 * 4 a_b_c", "*x*y **"}},
		"code":                      {"`a *b*` ``c`d``", []string{"<36>a *b*<> <36>c`d<>"}},
		"code without an end":       {"a ` b", []string{"a ` b"}},
		"a marker in code":          {"**a `**` b**", []string{"<1>a <><1;36>**<><1> b<>"}},
		"headings":                  {"# One\n### Three ###\n#none", []string{"<1;4>One<>", "<1>Three<>", "#none"}},
		"a list":                    {"- one\n* two and three four\n  + deep", []string{"• one", "• two and three", "  four", "  • deep"}},
		"an ordered list":           {"9. one two three four\n10) ten", []string{"9. one two three", "   four", "10) ten"}},
		"a quotation":               {"> one two three four\n>> deep", []string{"<2>│<> one two three", "<2>│<> four", "<2>│<> <2>│<> deep"}},
		"a rule":                    {"---\n* * *", []string{"<2>" + strings.Repeat("─", 18) + "<>", "<2>" + strings.Repeat("─", 18) + "<>"}},
		"a link":                    {"[the *text*](http://x.y) z", []string{"<4>the <><3;4>text<>", "<2>(http://x.y)<> z"}},
		"a link to itself":          {"[http://x.y](http://x.y)", []string{"<4>http://x.y<>"}},
		"an image":                  {"![cat](c.png \"Tom\")", []string{"<4>cat<><2> (c.png)<>"}},
		"brackets":                  {"a[0] [x] [y", []string{"a[0] [x] [y"}},
		"a block of code":           {"```go\nfor *p* {\n\n  x := \"a long text\"\n```\n*b*", []string{"<2>── go<>", "<36>for *p* {<>", "", "<36>  x := \"a long tex<>", "<36>t\"<>", "<2>──<>", "<3>b<>"}},
		"a fence in code":           {"````\n```\n````", []string{"<2>──<>", "<36>```<>", "<2>──<>"}},
		"a code block without end":  {"~~~\n*a*", []string{"<2>──<>", "<36>*a*<>"}},
		"a table":                   {"| a | *b* |\n|---|--:|\n| x | 1 |\n| `|` |\n\nc", []string{"<1>a<><2> │ <><1;3>b<>", "<2>──┼──<>", "x<2> │ <>1", "<36>|<><2> │ <>", "", "c"}},
		"a wide table":              {"| name | text |\n|---|---|\n| x | a long text that wraps |", []string{"<1>name<><2> │ <><1>text<>", "<2>─────┼────────────<>", "x   <2> │ <>a long text", "    <2> │ <>that wraps"}},
		"a table that does not fit": {"|a|b|c|d|\n|-|-|-|-|\n|1234567|1234567|1234567|12|", []string{"|a|b|c|d|", "|-|-|-|-|", "|1234567|1234567|1", "234567|12|"}},
		"a line with a bar":         {"| not a table\nx", []string{"| not a table", "x"}},
		"control characters":        {"a\x1b[2J *b\x1b[0m\u202e*", []string{`a\u001b[2J`, `<3>b\u001b[0m\u202e<>`}},
		"wide characters":           {"- 你好 你好 你好 你好", []string{"• 你好 你好 你好", "  你好"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, tagged(rendered(18, test.text)))
			var pieces []string
			for _, c := range test.text {
				pieces = append(pieces, string(c))
			}
			require.Equal(t, test.want, tagged(rendered(18, pieces...)), "by character")
		})
	}
}

func TestRowsAreFinalOnceTheyCannotChange(t *testing.T) {
	r := markdown.Renderer{Width: 18}
	require.Len(t, r.Write(strings.Repeat("word ", 30)), 9, "three words a row")
	require.Empty(t, r.Write("**bold "+strings.Repeat("word ", 18)), "the marker is undecided")
	require.Len(t, r.Tail(), 5)
	rows := tagged(r.Write("end** "))
	require.Equal(t, []string{"word word word", "<1>bold word word<>"}, rows[:2])
	require.Equal(t, []string{"<1>word end<> "}, tagged(r.End()))
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
	require.Equal(t, []string{"<1>a<>", "<2>─<>", "word word word"}, tagged(r.Write(strings.Repeat("word ", 20)))[:3])
}

func TestATextContinuesAfterABreak(t *testing.T) {
	r := markdown.Renderer{Width: 18}
	r.Write("**a** b")
	require.Equal(t, []string{"<1>a<> b"}, tagged(r.Break()))
	require.Equal(t, []string{"one two three four", "five"}, r.Write(" one two three four five\n"))
	require.Empty(t, r.Break())
	require.Equal(t, []string{"• x", "", "<2>──<>"}, tagged(r.Write("- x\n\n```\n")))
	r.Write("a")
	require.Equal(t, []string{"<36>a<>"}, tagged(r.Break()))
	require.Equal(t, []string{"<36>*b*<>", "<2>──<>"}, tagged(r.Write("*b*\n```\n")))
}

func TestTheWidthMayChangeWithinALine(t *testing.T) {
	words := strings.Fields(strings.Repeat("one **two** three ", 100))
	r := markdown.Renderer{Width: 80}
	var rows []string
	for i, word := range words {
		r.Width = 20 + i%60
		rows = append(rows, r.Write(word+" ")...)
	}
	rows = append(rows, r.End()...)
	require.Equal(t, strings.Fields(strings.Repeat("one two three ", 100)), strings.Fields(ansi.Strip(strings.Join(rows, "\n"))))
}

func FuzzPiecesRenderLikeTheWhole(f *testing.F) {
	for _, seed := range []string{
		"# a\n- **b `c** d` e*f*_g_\n> [h](i)![j](k)\n", "| a | b |\n|:-:|\n| `|` | c\n```x\n  y\n```", "a ***b** c* `` d ` e ``` f",
		strings.Repeat("a **b `c** ", 60), strings.Repeat("*a_ [b](", 80), strings.Repeat("~~a\\*", 90) + "~~", "*" + strings.Repeat("x ", 148) + "x*** y",
	} {
		f.Add(seed, uint64(3), 20)
	}
	f.Fuzz(func(t *testing.T, text string, cuts uint64, width int) {
		if width < 1 || width > 200 || len(text) > 4000 {
			t.Skip()
		}
		text = strings.ToValidUTF8(text, "")
		var pieces []string
		random := cuts
		for rest := text; rest != ""; {
			random = random*6364136223846793005 + 1442695040888963407
			n := min(len(rest), 1+int(random>>59))
			for n < len(rest) && rest[n]&0xc0 == 0x80 {
				n++
			}
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole, piecewise := rendered(width, text), rendered(width, pieces...)
		// Where rows end can differ: ansi.Wrap measures a word with a hyphen by what precedes it.
		require.Equal(t, styled(whole), styled(piecewise))
		for _, row := range piecewise {
			require.LessOrEqual(t, ansi.StringWidth(row), max(width, 10))
		}
		stripped := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(strings.Join(whole, "\n"), "")
		require.Equal(t, terminal.Clean(stripped), stripped)
		// Letters and digits are never markers.
		isText := func(text string) []rune {
			return slices.DeleteFunc([]rune(text), func(c rune) bool { return c < 'a' || c > 'z' })
		}
		if !strings.ContainsAny(text, "[]\"`|~") { // addresses, languages of code and cells can be dropped
			require.Equal(t, string(isText(text)), string(isText(stripped)))
		}
	})
}

func BenchmarkALongLine(b *testing.B) {
	for b.Loop() {
		r := markdown.Renderer{Width: 80}
		for range 10_000 {
			r.Write("word ")
			r.Tail()
		}
	}
}

func TestLinesOfMarkersTakeLinearTime(t *testing.T) {
	for _, piece := range []string{"*`", "[", "*a ", "**a", "`*` ", "[a](", "_a`", "![[", "~~a`~~", "\\*"} {
		text := strings.Repeat(piece, 5_000/len(piece))
		r := markdown.Renderer{Width: 10}
		began := time.Now()
		for part := range slices.Chunk([]byte(text), 10) {
			r.Write(string(part))
			r.Tail()
		}
		r.End()
		require.Less(t, time.Since(began), 10*time.Second, piece) // quadratic time would be minutes
	}
}
