package markdown

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// block is a line, or the rest of one, ready to be wrapped.
type block struct {
	// first and next precede the first and the further rows.
	first, next string
	base        style
	isCode      bool // spaces matter, and nothing is a marker
	isPlain     bool // nothing is a marker
	before      rune // what precedes the text; 0 at the beginning of a line

	// spans and parts are those of text; final is the number of their characters that cannot change.
	text  string
	spans []span
	parts []part
	final int
}

var (
	heading = regexp.MustCompile(`^ {0,3}(#{1,6})[ ]+`)
	closing = regexp.MustCompile(`(?:^|[ ]+)#+[ ]*$`)
	rule    = regexp.MustCompile(`^ {0,3}(?:(?:\*[ ]*){3,}|(?:-[ ]*){3,}|(?:_[ ]*){3,})$`)
	quote   = regexp.MustCompile(`^ {0,3}>[ ]?`)
	item    = regexp.MustCompile(`^([ ]*)([-*+]|[0-9]{1,9}[.)])[ ]+`)
	indent  = regexp.MustCompile(`^[ ]+`)
	fences  = regexp.MustCompile("^[ ]*(```+|~~~+)[ ]*([^`]{0,60})$")
)

func fenceOf(line string) (fence, info string) {
	if match := fences.FindStringSubmatch(line); match != nil {
		return match[1], strings.TrimSpace(match[2])
	}
	return "", ""
}

// block reads a line, of which more can follow unless it is complete.
func (r *Renderer) block(line string, complete bool) block {
	if r.continues != nil {
		return r.continues.with(line, complete)
	}
	ruled := func(text string) block {
		b := block{base: dim, isPlain: true}.with(text, complete)
		b.final = 0
		return b
	}
	switch fence, info := fenceOf(line); {
	case r.IsPlain:
		return block{isPlain: true}.with(line, complete)
	case fence != "" && r.fence == "":
		return ruled(strings.TrimSpace("── " + info))
	case fence != "" && info == "" && strings.HasPrefix(fence, r.fence):
		return ruled("──")
	case r.fence != "":
		return block{isCode: true, base: code}.with(line, complete)
	case rule.MatchString(line):
		return ruled(strings.Repeat("─", min(maxRule, r.width())))
	}
	var b block
	take := func(mark, first, next string) {
		b.first, b.next, line = b.first+first, b.next+next, line[len(mark):]
	}
	for mark := quote.FindString(line); mark != ""; mark = quote.FindString(line) {
		bar := dim.paint("│") + " "
		take(mark, bar, bar)
	}
	if match := heading.FindStringSubmatch(line); match != nil {
		b.base = bold
		if len(match[1]) <= 2 {
			b.base |= underlined
		}
		take(match[0], "", "")
	} else if match := item.FindStringSubmatch(line); match != nil {
		mark := match[2]
		if len(mark) == 1 {
			mark = "•"
		}
		mark = match[1] + mark + " "
		take(match[0], mark, strings.Repeat(" ", ansi.StringWidth(mark)))
	} else if spaces := indent.FindString(line); spaces != "" {
		take(spaces, spaces, spaces)
	}
	if ansi.StringWidth(b.first) > r.width()/2 {
		b.first, b.next = "", ""
	}
	return b.with(line, complete)
}

// with returns the block with a text.
func (b block) with(text string, complete bool) block {
	b.text = text
	if b.isCode || b.isPlain {
		b.spans, b.parts = []span{{text, b.base}}, []part{{0, true, text}}
		b.final = b.count(text)
		return b
	}
	if complete && b.base&bold != 0 {
		text = closing.ReplaceAllString(text, "")
	}
	p := parse(text, b.base, complete, b.before)
	b.spans, b.parts = p.spans, p.parts
	for _, part := range p.parts {
		if part.offset < p.pending {
			b.final += b.count(part.text)
		}
	}
	return b
}

// count returns the number of characters of a text, of which spaces matter only in code.
func (b block) count(text string) (n int) {
	for _, c := range text {
		if b.isCode || !unicode.IsSpace(c) {
			n++
		}
	}
	return n
}

// after returns the spans without their first n characters.
func (b block) after(n int) []span {
	for i, s := range b.spans {
		for at, c := range s.text {
			isCounted := b.isCode || !unicode.IsSpace(c)
			if n == 0 && isCounted {
				return append([]span{{s.text[at:], s.style}}, b.spans[i+1:]...)
			}
			if isCounted {
				n--
			}
		}
	}
	return nil
}
