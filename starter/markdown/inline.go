package markdown

import (
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// Styles are parameters of a control sequence (ECMA-48, "SGR"), joined by semicolons.
const (
	bold       = "1"
	dim        = "2"
	italic     = "3"
	underlined = "4"
	code       = "36"
)

// cell is a character, which can be wider than a cell of the terminal.
type cell struct {
	text  string
	width int
	style string
	// at is the offset of the character in the text if isExact is set, else that of the markup around it.
	at      int
	isExact bool
}

// markups are the styles of the groups of markup, except the address of a link.
var markups = []string{"", code, bold + ";" + italic, bold, italic, italic, underlined}

var (
	markup = regexp.MustCompile("\\\\([*_`#|])" +
		"|`([^`]+)`" +
		`|\B\*\*\*([^\s*](?:[^*]*[^\s*])?)\*\*\*` +
		// Code within bold text can contain any marker.
		"|\\B\\*\\*((?:`[^`]+`|[^\\s`])(?:(?:`[^`]+`|[^`])*?(?:`[^`]+`|[^\\s`]))??)\\*\\*" +
		`|\B\*([^\s*](?:[^*]*[^\s*])?)\*\B` +
		`|\b_([^\s_](?:[^_]*[^\s_])?)_\b` +
		`|!?\[([^\[\]]+)\]\(([^\s()]+(?:\([^\s()]*\)[^\s()]*)*)(?: "[^"]*")?\)`)
	// opener begins markup that can still end.
	opener = regexp.MustCompile("`|\\B\\*(?:\\S|$)|\\b_(?:\\S|$)|\\[[^\\[\\]]*(?:\\](?:\\([^)]*)?)?$|[!\\\\]$")
)

// parse returns the cells of a text, and the offset of the first markup that further text can change.
func parse(text, style string) (cells []cell, open int) {
	begin, open := 0, len(text)
	for _, match := range append(markup.FindAllStringSubmatchIndex(text, -1), []int{len(text), len(text)}) {
		plain := text[begin:match[0]]
		if at := opener.FindStringIndex(plain); at != nil {
			open = min(open, begin+at[0])
		}
		if match[1] == len(text) { // the next character can change its meaning
			open = min(open, match[0])
		}
		cells = append(cells, cellsOf(plain, style, begin, true)...)
		begin = match[1]
		group := slices.IndexFunc(match[2:], func(at int) bool { return at >= 0 }) / 2
		if len(match) == 2 {
			break
		}
		inner, mark := text[match[2*group+2]:match[2*group+3]], strings.Trim(style+";"+markups[group], ";")
		var marked []cell
		if markups[group] == "" || markups[group] == code {
			marked = cellsOf(inner, mark, 0, false)
		} else {
			marked, _ = parse(inner, mark)
		}
		if markups[group] == underlined {
			if address := text[match[len(match)-2]:match[len(match)-1]]; address != inner {
				marked = append(marked, cellsOf(" ("+terminal.Value(address)+")", strings.Trim(style+";"+dim, ";"), 0, false)...)
			}
		}
		for i := range marked {
			marked[i].at, marked[i].isExact = match[0], false
		}
		cells = append(cells, marked...)
	}
	return cells, open
}

func cellsOf(text, style string, at int, isExact bool) (cells []cell) {
	for len(text) > 0 {
		char, width := text[:1], 1
		if text[0] >= 0x80 || len(text) > 1 && text[1] >= 0x80 {
			char, width = ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		}
		cells = append(cells, cell{char, width, style, at, isExact})
		text, at = text[len(char):], at+len(char)
	}
	return cells
}

// isWord reports whether a following \b or \B differs from one at the beginning of a text.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// wrap splits cells into rows, between words if it can. In code, spaces matter.
func wrap(cells []cell, width int, isCode bool) (rows [][]cell) {
	isSpace := func(i int) bool { return !isCode && i < len(cells) && cells[i].text == " " }
	for {
		end, size, space := 0, 0, 0
		for ; end < len(cells) && (end == 0 || size+cells[end].width <= width); end++ {
			if size += cells[end].width; isSpace(end) {
				space = end
			}
		}
		if end == len(cells) {
			return append(rows, cells)
		}
		if space > 0 && !isSpace(end) {
			end = space
		}
		next := end
		for ; isSpace(next); next++ {
		}
		rows = append(rows, cells[:end])
		if cells = cells[next:]; len(cells) == 0 {
			return rows
		}
	}
}

func paintCells(cells []cell) string {
	var b strings.Builder
	for begin, end := 0, 1; begin < len(cells); end++ {
		if end == len(cells) || cells[end].style != cells[begin].style {
			text := ""
			for _, c := range cells[begin:end] {
				text += c.text
			}
			b.WriteString(paint(cells[begin].style, text))
			begin = end
		}
	}
	return b.String()
}

func paint(style, text string) string {
	if style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + ansi.ResetStyle
}
