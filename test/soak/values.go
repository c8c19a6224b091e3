package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

// hidden are characters that are invisible or change the direction of text, and control sequences of terminals.
var hidden = []string{"\u202e", "\u200b", "\u2066", "\x1b[2J", "\x00", "\r", "\u0085", "\ufeff", "\U000e0041", "\ud7ff", "</script>", "\u2028"}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// words returns a text that differs from all others, of about a number of bytes.
func words(r *rand.Rand, size int) string {
	text := fmt.Sprintf("w%x ", r.Uint64())
	if size <= len(text) {
		return text
	}
	part := fmt.Sprintf("%x%s ", r.Uint64(), pick(r, append(hidden, "", "", "", "")...))
	return text + strings.Repeat(part, (size-len(text))/len(part)+1)
}

// sizes are at and around the limits of the doors: an update, a signal, a stored input, a body.
var sizes = []int{0, 1, 100, 4 << 10, 60 << 10, 64 << 10, 70 << 10, 500 << 10, 2 << 20, 12 << 20, 17 << 20}

func size(r *rand.Rand) int { return sizes[min(r.IntN(len(sizes)), r.IntN(len(sizes)))] }

// input returns a valid event of any kind that clients may send, with a client event id. Its references name
// events of the context.
func (u *user) input() (data []byte, key string) {
	body := eventtest.InputBody().Example(int(u.rand.Int32()))
	switch b := body.(type) {
	case event.UserMessage:
		b.Content += words(u.rand, size(u.rand))
		body = b
	case event.Note:
		b.Content += words(u.rand, size(u.rand))
		body = b
	case event.AssistantMessage:
		b.Content, b.ThroughEventID = words(u.rand, size(u.rand)), u.place()
		body = b
	case event.ToolCall:
		b.MessageID = u.place()
		if u.rand.IntN(2) == 0 {
			b.ToolCallID = u.newKey()
		}
		body = b
	case event.ToolResult:
		b.ToolCallID = u.call(b.ToolCallID)
		body = b
	case event.ApprovalDecided:
		b.ToolCallID = u.call(b.ToolCallID)
		body = b
	}
	e := event.New(body)
	e.ClientEventID = u.newKey()
	data, err := e.MarshalJSON()
	if err != nil {
		return []byte("{}"), "" // a generated body that does not encode is invalid input, too
	}
	return bytes.ReplaceAll(data, []byte(`"demo:`), []byte(`"`+u.name()+`:`)), e.ClientEventID
}

// place is the id of an old event, one that does not exist, or none.
func (u *user) place() string {
	newest := len(u.events())
	return pick(u.rand, "", event.FormatID(u.name(), 2), event.FormatID(u.name(), 1+u.rand.IntN(newest+1)), event.FormatID(u.name(), newest+5),
		"other:0001", u.name()+":r0001", "x")
}

// call is the id of a call in the log, or another one.
func (u *user) call(other string) string {
	for _, e := range u.events() {
		if call, ok := e.Body.(event.ToolCall); ok && u.rand.IntN(2) == 0 {
			return call.ToolCallID
		}
	}
	return other
}

// malformed returns a payload that is probably invalid.
func (u *user) malformed() []byte {
	r := u.rand
	switch r.IntN(8) {
	case 0:
		return []byte(pick(r, ``, `null`, `7`, `"text"`, `[]`, `{}`, `[{}]`, `[null]`, `{"_tag":`, `{"_tag":null}`, `{"_tag":[]}`, `{"_tag":"UserMessage"}`,
			`{"_tag":"UserMessage","content":1e999}`, `{"_tag":"UserMessage","content":"\ud800"}`, "{\"_tag\":\"UserMessage\",\"content\":\"\xff\xfe\"}",
			`{"_tag":"UserMessage","content":"x","content":"y"}`, `{"_tag":"SetTimeout","timeoutMs":99999999999999999999}`,
			`{"_tag":"SetTimeout","timeoutMs":-1}`, `{"_tag":"SetRetryConfig","maxRetries":1e400}`, `{"_tag":"LLMRequestStarted"}`,
			`{"_tag":"SessionEnded","reason":"x"}`, `{"_tag":"UserMessage","content":"x"}{"_tag":"UserMessage","content":"y"}`,
			"\xef\xbb\xbf{\"_tag\":\"UserMessage\",\"content\":\"bom\"}", "\x00\x01\x02"))
	case 1:
		depth := pick(r, 99, 101, 8_999, 9_001, 100_000)
		return []byte(`{"_tag":"UserMessage","content":"deep","x":` + strings.Repeat("[", depth) + strings.Repeat("]", r.IntN(2)*depth) + `}`)
	case 2:
		count := pick(r, 2, 1000, 20_000)
		return []byte("[" + strings.TrimSuffix(strings.Repeat(`{"_tag":"Note","kind":"system","content":"n"},`, count), ",") + pick(r, "]", ",]", ""))
	case 3:
		return []byte(fmt.Sprintf(`{"_tag":"UserMessage","content":"x","n":%s}`, strings.Repeat("9", pick(r, 30, 400, 100_000))))
	case 4: // truncated, or one byte is changed
		data, _ := u.input()
		if r.IntN(2) == 0 {
			return data[:r.IntN(len(data))]
		}
		data[r.IntN(len(data))] ^= byte(1 << r.IntN(8))
		return data
	default:
		return u.mutated()
	}
}

// mutated returns an event with one other field.
func (u *user) mutated() []byte {
	data, _ := u.input()
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return data
	}
	names := slices.Sorted(maps.Keys(fields))
	name := pick(u.rand, append(names, "id", "timestamp", "contextName", "parentEventId", "apiKey", "extra")...)
	fields[name] = json.RawMessage(pick(u.rand, `null`, `0`, `-1`, `1e308`, `true`, `""`, `[]`, `{}`, `"\u0000"`, `"\u202e"`, `"*"`, `["a","a"]`,
		`{"$ref":"#"}`, `"../../etc/passwd"`, `"http://169.254.169.254/"`, `[[[[[]]]]]`, `"`+strings.Repeat("a", 300)+`"`, `18446744073709551616`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, `"(a+)+$"`, `[{"name":"a","parameters":{"pattern":"("}}]`))
	data, err := json.Marshal(fields)
	if err != nil {
		return []byte("{}")
	}
	return data
}
