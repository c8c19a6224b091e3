package index

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"golang.org/x/text/unicode/norm"
)

// maxTerm bounds the bytes of a term. Longer words, such as encoded files, are known by their beginning.
const maxTerm = 64

// word is a word of a text, from byte start to byte end. Its term is what the index contains: in lower case and in one
// of the forms that Unicode considers equivalent.
type word struct {
	term       string
	start, end int
}

// unspaced are the scripts that put no spaces between words. Each of their letters is a word, so that a part of a
// sentence is a phrase.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// words yields the words of a text: runs of letters and digits. Everything else separates words, also in names of
// programs: "client.Send" is two.
func words(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		start, isWhole := -1, false // of the current word; isWhole: no letter belongs to it any more
		end := func(at int) bool {
			if start < 0 {
				return true
			}
			w := word{term(text[start:at]), start, at}
			start = -1
			return yield(w)
		}
		for i, r := range text {
			isMark := unicode.Is(unicode.M, r)
			isLetter := unicode.IsLetter(r) || unicode.IsDigit(r)
			isAlone := isLetter && r > unicode.MaxLatin1 && unicode.In(r, unspaced...)
			if isMark && start >= 0 {
				continue
			}
			if (!isLetter || isAlone || isWhole) && !end(i) {
				return
			}
			if isLetter && start < 0 {
				start, isWhole = i, isAlone
			}
		}
		end(len(text))
	}
}

func term(text string) string {
	text = norm.NFKC.String(strings.ToLower(text))
	if len(text) <= maxTerm {
		return text
	}
	n := maxTerm
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// analyzer is the analyzer of bleve for texts.
type analyzer struct{}

func (analyzer) Analyze(text []byte) (stream analysis.TokenStream) {
	for w := range words(string(text)) {
		stream = append(stream, &analysis.Token{Term: []byte(w.term), Start: w.start, End: w.end, Position: len(stream) + 1})
	}
	return stream
}
