package index

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func termsOf(text string) (terms []string) {
	for w := range words(text) {
		terms = append(terms, w.term)
	}
	return terms
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		" \t\n.,;!":                      "",
		"Hello, World!":                  "hello world",
		"client.Send(ctx, demo_1)":       "client send ctx demo 1",
		"don't":                          "don t",
		"Grüße aus Köln":                 "grüße aus köln",
		"Cafe\u0301 CAFÉ":                "café café", // composed and not
		"ＦＵＬＬ１２":                         "full12",
		"東京タワー":                          "東 京 タ ワ ー",
		"Go言語 2026年":                     "go 言 語 2026 年",
		"हिन्दी भाषा":                    "हिन्दी भाषा",
		"สวัสดี":                         "ส วั ส ดี",
		"שלום عليكم":                     "שלום عليكم",
		"한국어 검색":                         "한국어 검색",
		"a\xffb":                         "a b",
		"\u0301":                         "",
		strings.Repeat("x", 100):         strings.Repeat("x", 64),
		strings.Repeat("é", 40) + " end": strings.Repeat("é", 32) + " end",
	} {
		require.Equal(t, want, strings.Join(termsOf(text), " "), text)
	}
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{"Hello, World!", "東京タワー e\u0301", "a\xff\xfeb", "\u0301\u0301", "ﷺ İ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for w := range words(text) {
			require.LessOrEqual(t, end, w.start)
			require.Less(t, w.start, w.end)
			require.LessOrEqual(t, w.end, len(text))
			require.NotEmpty(t, w.term)
			require.LessOrEqual(t, len(w.term), maxTerm)
			require.True(t, utf8.ValidString(w.term))
			end = w.end
		}
	})
}

func TestQueries(t *testing.T) {
	for text, want := range map[string][]clause{
		"Hello":                 {{[]string{"hello"}, true}},
		"hello ":                {{[]string{"hello"}, false}},
		"h":                     {{[]string{"h"}, false}}, // too short for any ending
		"東":                     {{[]string{"東"}, false}},
		"hello world":           {{[]string{"hello"}, false}, {[]string{"world"}, true}},
		"hello hello ":          {{[]string{"hello"}, false}},
		`"hello world"`:         {{[]string{"hello", "world"}, false}},
		`"hello world`:          {{[]string{"hello", "world"}, false}}, // somebody types
		`say "hello world" now`: {{[]string{"say"}, false}, {[]string{"hello", "world"}, false}, {[]string{"now"}, true}},
		"client.Se":             {{[]string{"client", "se"}, true}},
		"hello!":                {{[]string{"hello"}, false}},
		"-hello +(world) a:b*":  {{[]string{"hello"}, false}, {[]string{"world"}, false}, {[]string{"a", "b"}, false}},
		"東京":                    {{[]string{"東", "京"}, false}},
	} {
		got, err := parseQuery(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", " ", `""`, "!?", "\xff", strings.Repeat("a", MaxQuery+1), strings.Repeat("a b c d e f ", 33) + "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"} {
		_, err := parseQuery(text)
		require.ErrorIs(t, err, ErrQuery, text)
	}
}

func textOf(pieces []Fragment) (all, matches string) {
	for _, p := range pieces {
		if all += p.Text; p.Match {
			matches += "[" + p.Text + "]"
		}
	}
	return all, matches
}

func TestFragments(t *testing.T) {
	long := strings.Repeat("before ", 50) + "the Canary\n\n sings, and canaries\tfollow" + strings.Repeat(" after", 50)
	for _, test := range []struct{ text, query, all, matches string }{
		{"canary", "canary", "canary", "[canary]"},
		{"A <b>canary</b> & more", "canar", "A <b>canary</b> & more", "[canary]"},
		{"a canary, a Canary", "canary ", "a canary, a Canary", "[canary][Canary]"},
		{"in the mine, the mine", `"the mine"`, "in the mine, the mine", "[the mine][the mine]"},
		{"東京タワーへ", "京タ", "東京タワーへ", "[京タ]"},
		{"line\x1b[31m\u202e canary\x00", "canary", "line [31m\u202e canary ", "[canary]"},
		{long, "canar", "…before before before before before the Canary sings, and canaries follow after after after after after after after after after after after after after after…", "[Canary][canaries]"},
		{"nothing", "canary", "", ""},
	} {
		clauses, err := parseQuery(test.query)
		require.NoError(t, err)
		all, matches := textOf(fragments(test.text, clauses))
		require.Equal(t, test.all, all)
		require.Equal(t, test.matches, matches)
	}
}

// A word can be as long as a message, such as an encoded file.
func TestAFragmentHasTheBeginningOfALongWord(t *testing.T) {
	clauses, err := parseQuery("abab")
	require.NoError(t, err)
	pieces := fragments("see "+strings.Repeat("ab", 10_000)+" and more", clauses)
	require.Equal(t, []Fragment{{Text: "see "}, {Text: strings.Repeat("ab", fragmentLength/2), Match: true}, {Text: "…"}}, pieces)
}

func FuzzFragments(f *testing.F) {
	f.Add("The canary sings in the mine", "canary")
	f.Add(strings.Repeat("é ", 300)+"東京タワー", `"京タ"`)
	f.Add("a\xff b\x00c", "b")
	f.Fuzz(func(t *testing.T, text, query string) {
		text = strings.ToValidUTF8(text, "")
		clauses, err := parseQuery(query)
		if err != nil {
			return
		}
		pieces := fragments(text, clauses)
		all, matches := textOf(pieces)
		require.True(t, utf8.ValidString(all))
		require.LessOrEqual(t, utf8.RuneCountInString(all), fragmentLength+MaxQuery+2+maxTerms*fragmentLength)
		isFound := false
		found := slices.Collect(words(text))
		for i := range found {
			isFound = isFound || matchAt(found[i:], clauses) > 0
		}
		require.Equal(t, isFound, matches != "")
	})
}
