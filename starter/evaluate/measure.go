package evaluate

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/seed-9ed7edd4/chronicle/client"
)

// Measure is how the agreement of two answers is measured, from 0 to 1. It compares answers with tool calls by the names and
// the arguments of these calls, in any order, and others by their text. An answer with an error agrees with none. No measure
// knows what a text means.
type Measure string

// Measures.
const (
	Exact      Measure = "exact"      // 1 if the texts and the calls are identical
	Normalized Measure = "normalized" // 1 if the words are the same, without case, punctuation and formatting
	Words      Measure = "words"      // the share of common words (Dice), or of common calls
)

// Values returns all values.
func (Measure) Values() []Measure { return []Measure{Exact, Normalized, Words} }

// Effect describes a value.
func (m Measure) Effect() string {
	return map[Measure]string{
		Exact:      "identical texts and calls",
		Normalized: "the same words, without case, punctuation and formatting, or the same calls",
		Words:      "the share of common words, or of common calls",
	}[m]
}

// Agreement returns the agreement of two answers.
func (m Measure) Agreement(a, b client.Evaluated) float64 {
	if a.Error != "" || b.Error != "" {
		return 0
	}
	callsA, callsB := calls(a), calls(b)
	common := commonOf(callsA, callsB)
	haveCalls, sameCalls := len(callsA)+len(callsB) > 0, common == len(callsA) && common == len(callsB)
	switch {
	case m == Exact:
		return truth(sameCalls && a.Text == b.Text)
	case haveCalls && m == Normalized:
		return truth(sameCalls)
	case haveCalls:
		return dice(common, len(callsA), len(callsB))
	}
	wordsA, wordsB := words(a.Text), words(b.Text)
	if m == Normalized {
		return truth(strings.Join(wordsA, " ") == strings.Join(wordsB, " "))
	}
	return dice(commonOf(wordsA, wordsB), len(wordsA), len(wordsB))
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// dice returns the Dice coefficient of two multisets; that of two empty ones is 1.
func dice(common, a, b int) float64 {
	if a+b == 0 {
		return 1
	}
	return 2 * float64(common) / float64(a+b)
}

// commonOf returns the size of the intersection of two multisets.
func commonOf(a, b []string) (common int) {
	left := map[string]int{}
	for _, x := range a {
		left[x]++
	}
	for _, x := range b {
		if left[x] > 0 {
			left[x]--
			common++
		}
	}
	return common
}

// calls returns the calls of an answer in a form in which equal calls are equal.
func calls(e client.Evaluated) (all []string) {
	for _, c := range e.Calls {
		arguments := "{}"
		if len(bytes.TrimSpace(c.Arguments)) > 0 {
			arguments = string(c.Arguments)
		}
		var value any
		decoder := json.NewDecoder(strings.NewReader(arguments))
		decoder.UseNumber()
		if decoder.Decode(&value) == nil {
			if sorted, err := json.Marshal(value); err == nil {
				arguments = string(sorted)
			}
		}
		all = append(all, c.Name+" "+arguments)
	}
	return all
}

// words returns the words of a text in lower case. Scripts that are written without spaces have words of one character.
func words(text string) (all []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
			word.Reset()
		}
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			end()
			all = append(all, string(r))
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			word.WriteRune(r)
		default:
			end()
		}
	}
	end()
	return all
}
