package rig

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Message is what a user says: which message it is, and how the model is to
// answer it.
type Message struct {
	// Key is unique, and one word.
	Key string
	// Tokens is the length of the answer, at least 1.
	Tokens int
	// Every is the time between two tokens; 0: none.
	Every time.Duration
	// Padding is text that follows, to make the message long. The model ignores it.
	Padding string
}

func (m Message) String() string {
	text := fmt.Sprintf("%s %d %v", m.Key, m.Tokens, m.Every)
	if m.Padding != "" {
		text += " " + m.Padding
	}
	return text
}

// ParseMessage reads what String wrote, without the padding.
func ParseMessage(text string) (m Message, err error) {
	text = text[:min(len(text), 200)] // a key is short, and the padding may be megabytes
	var every string
	if _, err := fmt.Sscanf(text, "%s %d %s", &m.Key, &m.Tokens, &every); err != nil {
		return m, fmt.Errorf("message %q: want KEY TOKENS EVERY: %w", text, err)
	}
	m.Every, err = time.ParseDuration(every)
	return m, err
}

// KeyOf is the key of the message with that text.
func KeyOf(text string) string {
	key, _, _ := strings.Cut(text, " ")
	return key
}

// token is a token as the model writes it now. The first one of an answer says
// what it answers.
func token(key string, index int) string {
	stamp := strconv.FormatInt(time.Now().UnixNano(), 36) + " "
	if index == 0 {
		return "re:" + key + " " + stamp
	}
	return stamp
}

// written is when the model wrote a token; ok is false for several at once, as
// whoever joins late is given them.
func written(token string) (at time.Time, ok bool) {
	words := strings.Fields(token)
	if len(words) == 2 && strings.HasPrefix(words[0], "re:") {
		words = words[1:]
	}
	if len(words) != 1 {
		return at, false
	}
	nanoseconds, err := strconv.ParseInt(words[0], 36, 64)
	return time.Unix(0, nanoseconds), err == nil
}

// Answered is the key of the message that an answer answers, and how many
// tokens it has.
func Answered(answer string) (key string, tokens int) {
	words := strings.Fields(answer)
	if len(words) == 0 {
		return "", 0
	}
	return strings.TrimPrefix(words[0], "re:"), len(words) - 1
}
