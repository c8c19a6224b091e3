package evaluate

import "strings"

// Part is a part of a text.
type Part struct {
	Text      string
	IsChanged bool // the other text lacks it
}

// maxChanged bounds the words of the texts that are compared, because that takes time and memory of their product.
const maxChanged = 1500

// Changed divides a text into the parts that another text has, in the same order, and those that it lacks. Longer texts are
// not divided.
func Changed(text, other string) []Part {
	a, b := pieces(text), pieces(other)
	if len(a) > maxChanged || len(b) > maxChanged {
		return []Part{{Text: text}}
	}
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	same := func(i, j int) bool { return strings.TrimSpace(a[i]) == strings.TrimSpace(b[j]) }
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); same(i, j) {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var parts []Part
	for i, j := 0, 0; i < len(a); {
		switch {
		case j < len(b) && same(i, j):
			parts = appendPart(parts, Part{Text: a[i]})
			i, j = i+1, j+1
		case j < len(b) && common[i][j+1] >= common[i+1][j]:
			j++
		default:
			parts = appendPart(parts, Part{a[i], true})
			i++
		}
	}
	return parts
}

func appendPart(parts []Part, p Part) []Part {
	if n := len(parts); n > 0 && parts[n-1].IsChanged == p.IsChanged {
		parts[n-1].Text += p.Text
		return parts
	}
	return append(parts, p)
}

// pieces returns the words of a text, each with the space after it.
func pieces(text string) (all []string) {
	start, inSpace := 0, false
	for i, r := range text {
		isSpace := strings.ContainsRune(" \t\r\n", r)
		if inSpace && !isSpace {
			all = append(all, text[start:i])
			start = i
		}
		inSpace = isSpace
	}
	if start < len(text) {
		all = append(all, text[start:])
	}
	return all
}
