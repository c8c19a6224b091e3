// Package preview shortens messages for lists.
package preview

import (
	"strings"
	"unicode/utf8"
)

// MaxCharacters is the maximum length of a preview, without the ellipsis.
const MaxCharacters = 120

// Of returns the beginning of a text on one line.
func Of(text string) string {
	isCut := len(text) > 4*utf8.UTFMax*MaxCharacters // most of which may be white space
	if isCut {
		text = text[:4*utf8.UTFMax*MaxCharacters]
	}
	line := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "))
	if len(line) > MaxCharacters {
		line, isCut = line[:MaxCharacters], true
	}
	if isCut {
		return strings.TrimRight(string(line), " ") + "…"
	}
	return string(line)
}
