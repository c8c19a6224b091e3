package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

const (
	// horizon is the length of emphasis, code and the text of a link, and longest that of a link, in bytes.
	horizon = 200
	longest = 600
)

type style uint8

const (
	bold style = 1 << iota
	italic
	underlined
	struck
	dim
	code
)

// codes are the parameters of the control sequence for each style (ECMA-48, "SGR").
var codes = map[style]string{bold: "1", italic: "3", underlined: "4", struck: "9", dim: "2", code: "36"}

func (s style) paint(text string) string {
	var set []string
	for bit := bold; bit <= code; bit <<= 1 {
		if s&bit != 0 {
			set = append(set, codes[bit])
		}
	}
	if len(set) == 0 || text == "" {
		return text
	}
	return "\x1b[" + strings.Join(set, ";") + "m" + text + ansi.ResetStyle
}

// span is a text in one style.
type span struct {
	text  string
	style style
}

// parser reads the text of a line. Unless the text is complete, more of the line can follow.
type parser struct {
	text     string
	before   rune // what precedes the text
	complete bool
	// pending is the offset of the first marker whose meaning depends on what follows.
	pending int
	spans   []span
	parts   []part
	written string // by the current step
	// codeEnds are results of codeEnd.
	codeEnds map[int]int
}

// part is how a part of the text, which begins at an offset, was read.
type part struct {
	offset    int
	isLiteral bool // as it stands, in the style of the line
	text      string
}

// parse reads a text. The spans of its beginning, up to the pending offset, are final.
func parse(text string, base style, complete bool, before rune) parser {
	p := parser{text: text, before: before, complete: complete, pending: len(text)}
	for i := 0; i < len(text); {
		p.written = ""
		n := p.step(i, base)
		p.parts = append(p.parts, part{i, p.written == text[i:i+n], p.written})
		i += n
	}
	return p
}

func spansOf(text string, base style) []span { return parse(text, base, true, 0).spans }

// add appends to the last span if the style is the same.
func (p *parser) add(text string, s style) {
	p.written += text
	if last := len(p.spans) - 1; last >= 0 && p.spans[last].style == s {
		p.spans[last].text += text
		return
	}
	p.spans = append(p.spans, span{text, s})
}

// step reads what begins at i and returns its length.
func (p *parser) step(i int, base style) int {
	switch c := p.text[i]; c {
	case '\\':
		if i+1 == len(p.text) {
			p.undecided(i, 1)
		} else if strings.IndexByte("*_`#|~", p.text[i+1]) >= 0 {
			p.add(p.text[i+1:i+2], base)
			return 2
		}
	case '`':
		return p.code(i, base)
	case '*', '_', '~':
		return p.emphasis(i, base)
	case '[':
		return p.link(i, i, base)
	case '!':
		if i+1 == len(p.text) {
			p.undecided(i, 1)
		} else if p.text[i+1] == '[' {
			return p.link(i, i+1, base)
		}
	}
	n := 1 + strings.IndexAny(p.text[i+1:], "\\`*_~[!")
	if n == 0 {
		n = len(p.text) - i
	}
	p.add(p.text[i:i+n], base)
	return n
}

// undecided notes that what begins at i can still have a meaning, within a limit in bytes.
func (p *parser) undecided(i, limit int) {
	if p.isOpen(i, limit) {
		p.pending = min(p.pending, i)
	}
}

func (p *parser) isOpen(i, limit int) bool { return !p.complete && len(p.text)-i <= limit }

// run returns the length of the sequence of equal bytes at i, and whether it can still become longer.
func (p *parser) run(i int) (n int, open bool) {
	for n = 1; i+n < len(p.text) && p.text[i+n] == p.text[i]; n++ {
	}
	return n, !p.complete && i+n == len(p.text)
}

func (p *parser) code(i int, base style) int {
	n, _ := p.run(i)
	end := p.codeEnd(i, n)
	if end == 0 {
		p.undecided(i, horizon)
		p.add(p.text[i:i+n], base)
		return n
	}
	text := p.text[i+n : end-n]
	if inner := strings.TrimSuffix(strings.TrimPrefix(text, " "), " "); len(inner) == len(text)-2 && strings.TrimSpace(inner) != "" {
		text = inner
	}
	p.add(text, base|code)
	return end - i
}

// codeEnd returns the end of the code that n marks at i begin; 0 for none.
func (p *parser) codeEnd(i, n int) (end int) {
	if end, ok := p.codeEnds[i]; ok {
		return end
	}
	limit := min(len(p.text), i+horizon)
	for j := i + n; j < limit && end == 0; j++ {
		if p.text[j] == '`' {
			m, open := p.run(j)
			if m == n && !open && j+m <= limit {
				end = j + m
			}
			j += m - 1
		}
	}
	if p.codeEnds == nil {
		p.codeEnds = map[int]int{}
	}
	p.codeEnds[i] = end
	return end
}

func (p *parser) emphasis(i int, base style) int {
	n, open := p.run(i)
	s := map[int]style{1: italic, 2: bold, 3: bold | italic}[n]
	if p.text[i] == '~' {
		s = map[int]style{2: struck}[n]
	}
	switch {
	case open:
		p.undecided(i, horizon)
	case s == 0 || i+n == len(p.text) || isSpace(p.text[i+n:]) || p.text[i] == '_' && p.isInWord(i):
	default:
		end, isPending := p.closer(i, n)
		if end > 0 {
			for _, in := range spansOf(p.text[i+n:end-n], base|s) {
				p.add(in.text, in.style)
			}
			return end - i
		}
		if isPending {
			p.pending = min(p.pending, i)
		}
		p.undecided(i, horizon)
	}
	p.add(p.text[i:i+n], base)
	return n
}

// closer returns the end of the marker that closes the one of n bytes at i; 0 for none. It is pending
// while what precedes the end can still be code.
func (p *parser) closer(i, n int) (end int, isPending bool) {
	marker := p.text[i]
	limit := min(len(p.text), i+horizon)
	for j := i + n; j < limit; j++ {
		switch p.text[j] {
		case '\\':
			j++
		case '`':
			m, _ := p.run(j)
			switch end := p.codeEnd(j, m); {
			case end > 0:
				j = end - 1
			case p.isOpen(j, horizon):
				return 0, true
			default:
				j += m - 1
			}
		case marker:
			m, open := p.run(j)
			end := j + m
			isClosing := !open && end <= limit && (m == n || m == 3 && n < 3) && j > i+n && !endsInSpace(p.text[:j]) &&
				(marker != '_' || !beginsWord(p.text[end:]))
			if isClosing {
				return end, false
			}
			j = end - 1
		}
	}
	return 0, false
}

// link reads [text](address) at an offset, before which an image has a mark that begins at i.
func (p *parser) link(i, at int, base style) int {
	textEnd := p.bracket(at, min(len(p.text), i+horizon), '[', ']')
	switch {
	case textEnd == 0:
		p.undecided(i, horizon)
	case textEnd == len(p.text):
		p.undecided(i, longest)
	case p.text[textEnd] == '(':
		end := p.bracket(textEnd, min(len(p.text), i+longest), '(', ')')
		if end == 0 {
			p.undecided(i, longest)
			break
		}
		address, _, _ := strings.Cut(strings.TrimSpace(p.text[textEnd+1:end-1]), " ")
		plain := ""
		for _, in := range spansOf(p.text[at+1:textEnd-1], base|underlined) {
			p.add(in.text, in.style)
			plain += in.text
		}
		if address != "" && address != plain {
			p.add(" ("+terminal.Value(address)+")", base|dim)
		}
		return end - i
	}
	p.add(p.text[i:at+1], base)
	return at + 1 - i
}

// bracket returns the end of the bracket that opens at i; 0 if it does not close before a limit.
func (p *parser) bracket(i, limit int, opening, closing byte) int {
	depth := 0
	for j := i; j < limit; j++ {
		switch p.text[j] {
		case opening:
			depth++
		case closing:
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return 0
}

func isSpace(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSpace(r)
}

func endsInSpace(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsSpace(r)
}

func beginsWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func (p *parser) isInWord(i int) bool {
	r := p.before
	if i > 0 {
		r, _ = utf8.DecodeLastRuneInString(p.text[:i])
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}
