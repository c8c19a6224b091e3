package llm

import (
	"strings"
	"unicode/utf8"
)

// joiner joins the pieces of a text. Servers split characters over two pieces, as bytes or as escaped surrogates.
type joiner struct{ held string } // the beginning of a character

// add returns the text that a piece completes.
func (j *joiner) add(piece string, quirks *quirkSet) string {
	if j.held == "" && utf8.ValidString(piece) {
		return piece
	}
	if j.held != "" {
		quirks.add(quirkSplit)
	}
	text := j.held + piece
	j.held = text[len(text)-beginningAt(text):]
	return repaired(text[:len(text)-len(j.held)], quirks)
}

// rest returns the text that no piece completed.
func (j *joiner) rest(quirks *quirkSet) string {
	text := repaired(j.held, quirks)
	j.held = ""
	return text
}

// beginningAt returns the length of the beginning of a character at the end of a text.
func beginningAt(text string) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(text)); n++ {
		end := text[len(text)-n:]
		if utf8.RuneStart(end[0]) {
			if !utf8.FullRuneInString(end) || isHigh(end) {
				return n
			}
			break
		}
	}
	return 0
}

const halfSize = 3 // bytes of half of a surrogate pair, as [appendUnit] writes it

func isHigh(text string) bool { return isHalf(text, 0xA0) }
func isLow(text string) bool  { return isHalf(text, 0xB0) }

func isHalf(text string, second byte) bool {
	return len(text) >= halfSize && text[0] == 0xED && text[1]&0xF0 == second && text[2]&0xC0 == 0x80
}

// joinHalves joins adjacent halves of surrogate pairs.
func joinHalves(text string) string {
	var joined strings.Builder
	for {
		at := strings.IndexByte(text, 0xED)
		if at < 0 {
			break
		}
		if high := text[at:]; isHigh(high) && isLow(high[halfSize:]) {
			unit := func(half string) rune { return rune(half[1]&0x0F)<<6 | rune(half[2]&0x3F) }
			joined.WriteString(text[:at])
			joined.WriteRune(0x10000 + unit(high)<<10 + unit(high[halfSize:]))
			text = high[2*halfSize:]
			continue
		}
		joined.WriteString(text[:at+1])
		text = text[at+1:]
	}
	if joined.Len() == 0 {
		return text
	}
	return joined.String() + text
}

// repaired joins halves of characters, and replaces what is not UTF-8.
func repaired(text string, quirks *quirkSet) string {
	if utf8.ValidString(text) {
		return text
	}
	if text = joinHalves(text); !utf8.ValidString(text) {
		quirks.add(quirkNotUTF8)
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return text
}
