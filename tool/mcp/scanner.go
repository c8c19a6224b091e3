package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// scanner finds messages in the output of a server. They may follow other text on the same line, lack the line
// break at the end, or span lines. Text that is no message is noise.
type scanner struct {
	message func(object []byte) (isMessage bool) // receives complete JSON objects
	noise   func(text []byte)
	deliver func() // the last message, after the noise before it
	tooLong func() // a JSON object exceeds maxMessageBytes and is skipped

	text              []byte // since the last message or line of noise
	line              int    // where the last line begins in the text
	start             int    // where the incomplete object begins in the text, if depth > 0
	depth             int    // of brackets
	inString, escaped bool
	isSkipping        bool // until the end of the line
}

func (s *scanner) Write(output []byte) (int, error) {
	for _, b := range output {
		if s.isSkipping {
			s.isSkipping = b != '\n'
			continue
		}
		s.text = append(s.text, b)
		s.scan(b)
		if len(s.text) > maxMessageBytes {
			if s.depth > 0 {
				s.tooLong()
			}
			s.flush(s.text)
			s.isSkipping = b != '\n'
		}
	}
	return len(output), nil
}

func (s *scanner) scan(b byte) {
	switch {
	case s.depth == 0:
		switch b {
		case '{':
			s.start, s.depth = len(s.text)-1, 1
		case '\n': // quotes may have hidden a message
			s.recover(false)
		}
	case s.inString:
		switch {
		case b == '\n': // no JSON string contains one
			s.recover(false)
		case s.escaped:
			s.escaped = false
		case b == '\\':
			s.escaped = true
		case b == '"':
			s.inString = false
		}
	case b == '"':
		s.inString = true
	case b == '{', b == '[':
		s.depth++
	case b == '}', b == ']':
		if s.depth--; s.depth == 0 && s.message(s.text[s.start:]) {
			s.flush(s.text[:s.start])
			s.deliver()
		}
	case b == '\n':
		s.endLine()
	}
}

// endLine decides whether the incomplete object may continue on the next line.
func (s *scanner) endLine() {
	line := s.text[s.line:]
	switch {
	case s.line <= s.start:
		if s.recover(isBeginning(s.text[s.start:])) {
			return
		}
	case line[0] == '{' || bytes.Contains(line, []byte(`"jsonrpc"`)) && bytes.ContainsRune(line, '{'):
		// Another object begins, so the earlier lines were noise.
		line = bytes.Clone(line)
		s.flush(s.text[:s.line])
		_, _ = s.Write(line)
		return
	}
	s.line = len(s.text)
}

// isBeginning reports whether a text is the beginning of a JSON value.
func isBeginning(text []byte) bool {
	err := json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage))
	return err == nil || errors.Is(err, io.ErrUnexpectedEOF)
}

// recover finds messages in a text whose brackets or quotes do not match. If there are none, a text that may continue
// remains.
func (s *scanner) recover(mayContinue bool) (isDone bool) {
	noise, rest := 0, s.text
	budget := 16*len(rest) + 1<<16 // bytes to decode, because each bracket may begin a long object
	for budget > 0 {
		begin := bytes.IndexByte(rest, '{')
		if begin < 0 {
			break
		}
		rest = rest[begin:]
		decoder := json.NewDecoder(bytes.NewReader(rest))
		var object json.RawMessage
		err := decoder.Decode(&object)
		var syntax *json.SyntaxError
		switch {
		case err == nil:
			size := int(decoder.InputOffset())
			if s.message(object) {
				at := len(s.text) - len(rest)
				s.noise(s.text[noise:at])
				noise = at + size
				s.deliver()
			}
			budget -= size
			rest = rest[size:]
			continue
		case errors.As(err, &syntax):
			budget -= int(syntax.Offset)
		default:
			budget -= len(rest)
		}
		rest = rest[1:]
	}
	if noise == 0 && mayContinue {
		return false
	}
	s.flush(s.text[noise:])
	return true
}

// flush begins a new text after noise.
func (s *scanner) flush(noise []byte) {
	s.noise(noise)
	if cap(s.text) > 1<<20 {
		s.text = nil
	}
	*s = scanner{message: s.message, noise: s.noise, deliver: s.deliver, tooLong: s.tooLong, text: s.text[:0]}
}

// isSeparator reports whether text between messages is not worth a log line, as between those of a batch.
func isSeparator(text []byte) bool { return len(bytes.Trim(text, "\ufeff\x00[], \t\r\n")) == 0 }

// end is called at the end of the output.
func (s *scanner) end() {
	if len(s.text) > 0 {
		s.recover(false)
	}
}
