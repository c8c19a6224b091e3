package rig

import (
	"encoding/json"
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
	Script Script
	// Padding makes the message longer. The model ignores it.
	Padding string
}

// Script defines the tool calls before the last answer. Its strings must not contain spaces: ParseMessage splits a
// message at spaces.
type Script struct {
	// Steps are the tool calls of the answers before the last one.
	Steps [][]Call `json:"steps,omitempty"`
}

// Call is a tool call of the model.
type Call struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (m Message) String() string {
	text := fmt.Sprintf("%s %d %v", m.Key, m.Tokens, m.Every)
	if len(m.Script.Steps) > 0 {
		script, _ := json.Marshal(m.Script) // strings always encode
		text += " " + string(script)
	}
	if m.Padding != "" {
		text += " " + m.Padding
	}
	return text
}

// ParseMessage is the inverse of String, without the padding.
func ParseMessage(text string) (m Message, err error) {
	fields := strings.SplitN(text, " ", 5)
	if len(fields) < 3 {
		return m, fmt.Errorf("message %q: invalid (KEY TOKENS EVERY)", text[:min(len(text), 200)])
	}
	m.Key = fields[0]
	if m.Tokens, err = strconv.Atoi(fields[1]); err != nil {
		return m, fmt.Errorf("message %s: tokens: %w", m.Key, err)
	}
	if m.Every, err = time.ParseDuration(fields[2]); err != nil {
		return m, fmt.Errorf("message %s: %w", m.Key, err)
	}
	if len(fields) > 3 && strings.HasPrefix(fields[3], "{") {
		if err = json.Unmarshal([]byte(fields[3]), &m.Script); err != nil {
			return m, fmt.Errorf("message %s: script: %w", m.Key, err)
		}
	}
	return m, nil
}

func KeyOf(text string) string {
	key, _, _ := strings.Cut(text, " ")
	return key
}

// StampBytes is the length of the time in a token.
const StampBytes = 12

// token is a token of an answer with the current time. The first token has the key.
func token(key string, index int) string {
	stamp := strconv.FormatInt(time.Now().UnixNano(), 36) + " "
	if index == 0 {
		return "re:" + key + " " + stamp
	}
	return stamp
}

// WrittenAt returns the time in a token; ok is false for other words and for concatenated tokens, which late observers
// receive.
func WrittenAt(token string) (at time.Time, ok bool) {
	stamp := strings.TrimSuffix(token, " ")
	if key, second, ok := strings.Cut(stamp, " "); ok && strings.HasPrefix(key, "re:") {
		stamp = second
	}
	nanoseconds, err := strconv.ParseInt(stamp, 36, 64)
	at = time.Unix(0, nanoseconds)
	return at, err == nil && time.Since(at).Abs() < time.Hour
}

func Answered(answer string) (key string, tokens int) {
	words := strings.Fields(answer)
	if len(words) == 0 {
		return "", 0
	}
	return strings.TrimPrefix(words[0], "re:"), len(words) - 1
}
