package index

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fragment is a piece of plain text.
type Fragment struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"` // whether the query matches it
}

const (
	fragmentBefore = 40 // characters before the first match, at least a word less
	fragmentLength = 160
)

// fragments returns about [fragmentLength] characters of a text from shortly before the first match, on one line.
func fragments(text string, clauses []clause) []Fragment {
	var all []word
	first, from, to := -1, 0, 0
	for w := range words(text) {
		if all = append(all, w); first < 0 {
			n := matchBefore(all, clauses)
			if n == 0 {
				continue
			}
			first = len(all) - n
			from = window(text, all, first)
			to = max(w.end, forward(text, from, fragmentLength))
		}
		if w.start >= to {
			break
		}
	}
	if first < 0 {
		return nil // the text was cut, or its words are those of another version
	}
	var pieces []Fragment
	add := func(piece string, isMatch bool) {
		if piece != "" {
			pieces = append(pieces, Fragment{oneLine(piece), isMatch})
		}
	}
	before := ""
	if from > 0 {
		before = "…"
	}
	at := from
	for i := first; i < len(all) && all[i].start < to; {
		n := matchAt(all[i:], clauses)
		if n == 0 {
			i++
			continue
		}
		end := all[i+n-1].end
		add(before+text[at:all[i].start], false)
		if cut := forward(text, all[i].start, fragmentLength); cut < end {
			add(text[all[i].start:cut], true)
			add("…", false)
			return pieces
		}
		add(text[all[i].start:end], true)
		at, before = end, ""
		i += n
	}
	if to = max(at, to); to == len(text) {
		add(text[at:], false)
		return pieces
	}
	for _, w := range all[first:] {
		if w.start > at && w.start < to && w.end > to {
			to = w.start // do not cut a word
		}
	}
	add(strings.TrimRightFunc(text[at:to], unicode.IsSpace)+"…", false)
	return pieces
}

// matchBefore returns the number of words of a match that ends with the last word; 0: none does.
func matchBefore(all []word, clauses []clause) int {
	for _, c := range clauses {
		if n := len(c.terms); n <= len(all) && c.matches(all[len(all)-n:]) {
			return n
		}
	}
	return 0
}

// matchAt returns the number of words at the beginning that the longest matching clause has; 0: none matches.
func matchAt(at []word, clauses []clause) (n int) {
	for _, c := range clauses {
		if len(c.terms) > n && c.matches(at) {
			n = len(c.terms)
		}
	}
	return n
}

// window returns where the fragment begins: at a word.
func window(text string, all []word, first int) int {
	earliest := all[first].start
	for n := 0; n < fragmentBefore && earliest > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:earliest])
		earliest -= size
	}
	if earliest == 0 {
		return 0
	}
	from := all[first].start
	for i := first - 1; i >= 0 && all[i].start >= earliest; i-- {
		from = all[i].start
	}
	return from
}

// forward returns the position after some characters.
func forward(text string, from, characters int) int {
	for ; characters > 0 && from < len(text); characters-- {
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}
	return from
}

// oneLine replaces white space and control characters by a space.
func oneLine(text string) string {
	var b strings.Builder
	isSpace := false
	for _, c := range text {
		if unicode.IsSpace(c) || unicode.IsControl(c) {
			if !isSpace {
				b.WriteByte(' ')
			}
			isSpace = true
			continue
		}
		isSpace = false
		b.WriteRune(c)
	}
	return b.String()
}
