package rig

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

type Message struct {
	Key string
	// Tokens is at least 1.
	Tokens int
	Every  time.Duration
	// Padding makes the message longer. The model ignores it.
	Padding string
}

func (m Message) String() string {
	text := fmt.Sprintf("%s %d %v", m.Key, m.Tokens, m.Every)
	if m.Padding != "" {
		text += " " + m.Padding
	}
	return text
}

// ParseMessage is the inverse of String, without the padding.
func ParseMessage(text string) (m Message, err error) {
	text = text[:min(len(text), 200)] // excludes padding, which may be megabytes
	var every string
	if _, err := fmt.Sscanf(text, "%s %d %s", &m.Key, &m.Tokens, &every); err != nil {
		return m, fmt.Errorf("message %q: invalid (KEY TOKENS EVERY): %w", text, err)
	}
	m.Every, err = time.ParseDuration(every)
	return m, err
}

func KeyOf(text string) string {
	key, _, _ := strings.Cut(text, " ")
	return key
}

// token is a token of an answer with the current time. The first token has the key.
func token(key string, index int) string {
	stamp := strconv.FormatInt(time.Now().UnixNano(), 36) + " "
	if index == 0 {
		return "re:" + key + " " + stamp
	}
	return stamp
}

// writtenAt is the time in a token; ok is false for concatenated tokens, which late
// viewers receive.
func writtenAt(token string) (at time.Time, ok bool) {
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

func Answered(answer string) (key string, tokens int) {
	words := strings.Fields(answer)
	if len(words) == 0 {
		return "", 0
	}
	return strings.TrimPrefix(words[0], "re:"), len(words) - 1
}
