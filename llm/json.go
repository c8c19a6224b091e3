package llm

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// value is a valid JSON value, without space around it. Its methods never fail: a value of another type is an empty one.
//
// encoding/json is not used for answers: one field of an unexpected type ends its decoding, and it replaces each half
// of a surrogate pair that a server splits over two chunks.
type value []byte

// valueOf returns nil if the data is not one JSON value.
func valueOf(data []byte) value {
	if !json.Valid(data) {
		return nil
	}
	return trimSpace(data)
}

func trimSpace(data []byte) []byte { return bytes.Trim(data, " \t\r\n") }

func (v value) kind() byte {
	if len(v) == 0 {
		return 'n' // as null
	}
	return v[0]
}

func (v value) isNull() bool   { return v.kind() == 'n' }
func (v value) isObject() bool { return v.kind() == '{' }
func (v value) isArray() bool  { return v.kind() == '[' }
func (v value) isString() bool { return v.kind() == '"' }

// fields iterates over the fields of an object.
func (v value) fields() iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		if !v.isObject() {
			return
		}
		for rest := trimSpace(v[1:]); rest[0] != '}'; {
			var name, field value
			name, rest = cutValue(rest)
			field, rest = cutValue(rest)
			name = name[1 : len(name)-1]
			if bytes.IndexByte(name, '\\') >= 0 {
				name = value(unquote(name))
			}
			if !yield(name, field) {
				return
			}
		}
	}
}

// elements iterates over the elements of an array.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		if !v.isArray() {
			return
		}
		for rest := trimSpace(v[1:]); rest[0] != ']'; {
			var element value
			element, rest = cutValue(rest)
			if !yield(element) {
				return
			}
		}
	}
}

// field returns the last field of an object with this name, as encoding/json does.
func (v value) field(name string) (found value) {
	for n, field := range v.fields() {
		if string(n) == name {
			found = field
		}
	}
	return found
}

// cutValue cuts off the value at the beginning of valid JSON, and the separators after it.
func cutValue(data []byte) (v value, rest []byte) {
	end, depth := 0, 0
	for {
		switch data[end] {
		case '"':
			for end++; data[end] != '"'; end++ {
				if data[end] == '\\' {
					end++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		end++
		if depth == 0 && (strings.IndexByte(`"}]`, data[end-1]) >= 0 || strings.IndexByte(",:}] \t\r\n", data[end]) >= 0) {
			return data[:end], bytes.TrimLeft(data[end:], ",: \t\r\n")
		}
	}
}

// text returns the text of a string, in which halves of characters remain, see [joiner]; "" for null, an object and an
// array; and any other value as it stands in the JSON.
func (v value) text() string {
	switch v.kind() {
	case '"':
		return unquote(v[1 : len(v)-1])
	case 'n', '{', '[':
		return ""
	}
	return string(v)
}

// number returns a number, also from a string, as an int of at most 32 bits; 0 for any other value.
func (v value) number() int {
	n, err := strconv.ParseFloat(strings.TrimSpace(v.text()), 64)
	if err != nil || math.IsNaN(n) {
		return 0
	}
	return int(max(math.MinInt32, min(n, math.MaxInt32)))
}

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func unquote(s []byte) string {
	at := bytes.IndexByte(s, '\\')
	if at < 0 {
		return string(s)
	}
	text := make([]byte, 0, len(s))
	for ; at >= 0; at = bytes.IndexByte(s, '\\') {
		text = append(text, s[:at]...)
		c := s[at+1]
		s = s[at+2:]
		switch escaped, ok := escapes[c]; {
		case c == 'u':
			text, s = appendUnit(text, unitOf(s)), s[4:]
		case ok:
			text = append(text, escaped)
		default:
			text = append(text, c)
		}
	}
	return joinHalves(string(append(text, s...)))
}

func unitOf(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // cannot fail: the JSON is valid
	return rune(n)
}

// appendUnit appends a unit of UTF-16. Half of a pair becomes three bytes that are no UTF-8.
func appendUnit(text []byte, r rune) []byte {
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(text, r)
	}
	return append(text, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
}
