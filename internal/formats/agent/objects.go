package agent

import (
	"bytes"
	"encoding/json"
)

// Bounds of the search for a line within a line, see [objects].
const (
	maxInsertedBytes = 1 << 20
	maxInsertedTries = 64
	maxRestLines     = 8
)

// objects finds the JSON objects in lines. Two programs that write to one file write into each other's lines: one line
// then stands within another one, with its own end.
//
//	{"type":"assistant","message":{"content":"The {"type":"status","uuid":"1"}
//	harbour"}}
type objects struct {
	// head is the beginning of an object into which others were written; lines counts those that were
	// no continuation of it.
	head  []byte
	lines int
}

// split returns the objects of a line, and the text after them.
func (o *objects) split(line []byte) (found [][]byte, rest []byte) {
	if json.Valid(line) && isObject(line) {
		return [][]byte{line}, nil
	}
	if len(o.head) > 0 && len(o.head)+len(line) <= MaxLineBytes {
		if found, ok := o.untangle(append(bytes.Clone(o.head), line...)); ok {
			return found, nil
		}
		o.lines++
	}
	if isObject(line) {
		if found, ok := o.untangle(line); ok {
			return found, nil
		}
	}
	return objectsOf(line)
}

// untangle reports whether line consists of objects and at most one beginning of an object with
// another one in it. It keeps the beginning.
func (o *objects) untangle(line []byte) ([][]byte, bool) {
	found, rest := objectsOf(line)
	if len(bytes.TrimSpace(rest)) == 0 {
		o.head = nil
		return found, true
	}
	at := inserted(rest)
	if at < 0 || !isObject(rest) {
		return nil, false
	}
	if len(o.head) > 0 && !bytes.HasPrefix(line, o.head) {
		return nil, false // one at a time
	}
	o.head, o.lines = bytes.Clone(rest[:at]), 0
	return append(found, rest[at:]), true
}

// abandoned returns a head that is not continued, at the end of the log or after maxRestLines lines.
func (o *objects) abandoned(atEnd bool) []byte {
	if len(o.head) == 0 || !atEnd && o.lines < maxRestLines {
		return nil
	}
	head := o.head
	o.head, o.lines = nil, 0
	return head
}

func isObject(text []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(text, " \t"), []byte("{")) }

// objectsOf returns the complete objects at the start of a line, and the text after them.
func objectsOf(line []byte) (found [][]byte, rest []byte) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	rest = line
	for isObject(rest) {
		var object json.RawMessage
		if decoder.Decode(&object) != nil {
			break
		}
		found = append(found, object)
		rest = line[decoder.InputOffset():]
	}
	return found, rest
}

// inserted returns the offset of a line that ends the text, -1 if there is none. Unlike the parts of a line,
// it has a type and a field of whole lines.
func inserted(text []byte) int {
	from := max(1, len(text)-maxInsertedBytes)
	end := len(text)
	for range maxInsertedTries {
		at := bytes.LastIndex(text[min(from, end):end], []byte(`{"`))
		if at < 0 {
			return -1
		}
		end = min(from, end) + at
		p, ok := probeOf(text[end:])
		if ok && p.Type != "" && (p.has("uuid") || p.has("session_id") || p.has("sessionId") || p.has("timestamp")) {
			return end
		}
	}
	return -1
}
