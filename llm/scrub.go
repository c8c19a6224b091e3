package llm

import (
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// minScrubbed is the size of the shortest key that is removed from answers, in bytes. Placeholders that people set for
// local servers are shorter.
const minScrubbed = 16

// scrub replaces the key in a text that the provider returned.
func (t *Target) scrub(text string) string {
	if len(t.key()) < minScrubbed {
		return text
	}
	return strings.ReplaceAll(text, t.key(), event.Removed)
}

// scrubber replaces the key in the pieces of a text.
type scrubber struct {
	key  string // "": none
	held string // the beginning of the key
}

func (t *Target) scrubber() scrubber {
	if len(t.key()) < minScrubbed {
		return scrubber{}
	}
	return scrubber{key: t.key()}
}

// add returns the text that a piece completes.
func (s *scrubber) add(piece string) string {
	if s.key == "" || s.held == "" && strings.IndexByte(piece, s.key[0]) < 0 {
		return piece
	}
	text := strings.ReplaceAll(s.held+piece, s.key, event.Removed)
	s.held = ""
	for at := max(0, len(text)-len(s.key)+1); ; at++ {
		next := strings.IndexByte(text[at:], s.key[0])
		if next < 0 {
			return text
		}
		if at += next; strings.HasPrefix(s.key, text[at:]) {
			s.held = text[at:]
			return text[:at]
		}
	}
}

// rest returns the text that no piece completed.
func (s *scrubber) rest() string {
	rest := s.held
	s.held = ""
	return rest
}
