package title

import (
	"strings"
	"unicode"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const (
	maxCharacters = 60
	maxMessage    = 2 << 10 // bytes of each message in the request
	maxText       = 8 << 10 // of all
)

// conversation is what a title depends on.
type conversation struct {
	details    reducer.Details
	isTitled   bool // the title was set or removed
	isClosed   bool
	answeredBy string // id of the event that completed the first answer; "": none
	newest     string // id of the newest event; "": none
	text       string // of the messages up to the first answer
}

func (c *conversation) add(e event.Event) {
	c.newest, c.details = e.ID, c.details.With(e.Body)
	switch body := e.Body.(type) {
	case event.SessionStarted:
		c.isClosed = false
	case event.SessionEnded:
		c.isClosed = true
	case event.SetDetails:
		c.isTitled = c.isTitled || body.Title != nil
	case event.UserMessage:
		c.say("User", body.Content)
	case event.AssistantMessage:
		c.say("Assistant", body.Content)
	case event.LLMRequestCompleted:
		if c.answeredBy == "" {
			c.answeredBy = e.ID
		}
	}
}

func (c *conversation) say(who, text string) {
	if text != "" && c.answeredBy == "" && len(c.text) < maxText {
		c.text += who + ": " + abridge(text) + "\n\n"
	}
}

func (c *conversation) wantsTitle() bool {
	return c.answeredBy != "" && !c.isTitled && !c.isClosed && !c.details.Archived && c.text != ""
}

func abridge(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + " …"
}

// clean returns the title in an answer: its first line, without decoration; "" if it has none.
func clean(answer string) string {
	answer = event.RedactOutput(strings.ToValidUTF8(answer, ""), 0)
	for line := range strings.FieldsFuncSeq(answer, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				return -1
			}
			return r
		}, line)
		line = strings.TrimPrefix(strings.TrimLeft(line, " \t#*"), "Title:")
		if line = strings.Trim(line, " \t*_`\"'“”„«»「」."); line != "" {
			return cut(strings.Join(strings.Fields(line), " "))
		}
	}
	return ""
}

// cut shortens a title to maxCharacters, if possible at a word.
func cut(title string) string {
	runes := []rune(title)
	if len(runes) <= maxCharacters && len(title) <= event.MaxTitleBytes {
		return title
	}
	runes = runes[:min(len(runes), maxCharacters-1)]
	for len(string(runes)) > event.MaxTitleBytes-len("…") {
		runes = runes[:len(runes)-1]
	}
	short := string(runes)
	if i := strings.LastIndexByte(short, ' '); i > len(short)/2 {
		short = short[:i]
	}
	return short + "…"
}
