// Package eventtest generates valid events and logs for property tests with [rapid].
//
//	rapid.Check(t, func(t *rapid.T) {
//		log := eventtest.Log("demo").Draw(t, "log")
//		…
//	})
//
// It covers every tag, every field and every value of an enumeration. Logs have the structure of real ones: ids are dense,
// parents are chained, times are monotonic, requests end once, and each tool result follows its call.
// Their content is random.
//
// [rapid]: https://pkg.go.dev/pgregory.net/rapid
package eventtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// ContextName generates names of contexts, with and without a tenant. They are often similar.
func ContextName() *rapid.Generator[string] {
	name := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,12}`), rapid.SampledFrom([]string{"a", "A", "a.", "a-", "contexts", "tenants"}))
	return rapid.OneOf(name, rapid.Custom(func(t *rapid.T) string { return name.Draw(t, "tenant") + "/" + name.Draw(t, "local") }))
}

// Epoch is the time at which generated logs begin.
var Epoch = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// Of generates valid bodies of one type, with random references.
func Of[T event.Body]() *rapid.Generator[T] {
	return rapid.Map(bodyOf(func(b event.Body) bool { _, ok := b.(T); return ok }), func(b event.Body) T { return b.(T) })
}

// Body generates valid bodies of every tag, with random references.
func Body() *rapid.Generator[event.Body] { return bodyOf(func(event.Body) bool { return true }) }

// InputBody generates those that clients may send.
func InputBody() *rapid.Generator[event.Body] {
	return bodyOf(func(b event.Body) bool { return b.Tag().IsInput() })
}

// SettingBody generates those that change settings.
func SettingBody() *rapid.Generator[event.Body] {
	return bodyOf(func(b event.Body) bool { _, ok := b.(event.Setting); return ok })
}

func bodyOf(isWanted func(event.Body) bool) *rapid.Generator[event.Body] {
	examples := slices.DeleteFunc(event.Examples(), func(b event.Body) bool { return !isWanted(b) })
	return rapid.Custom(func(t *rapid.T) event.Body { return random(t, rapid.SampledFrom(examples).Draw(t, "example")) })
}

// UserMessage generates messages with content.
func UserMessage() *rapid.Generator[event.UserMessage] {
	return rapid.Map(Of[event.UserMessage](), func(m event.UserMessage) event.UserMessage {
		m.Content = "u" + m.Content
		return m
	})
}

// Usage generates valid usages.
func Usage() *rapid.Generator[event.Usage] {
	return rapid.Map(Of[event.LLMRequestCompleted](), func(b event.LLMRequestCompleted) event.Usage { return b.Usage })
}

// Value generates canonical JSON values other than null, without fields named like an API key.
func Value() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return json.RawMessage(rapid.SampledFrom([]string{
				`"sunny"`, `""`, `0`, `-1.50e3`, `123456789012345678901234567890`, `false`, `[]`, `{}`,
				`{"a":[1,{"b":null}],"z":"<&>"}`,
			}).Draw(t, "value"))
		case 1:
			return json.RawMessage(fmt.Sprintf(`{"city":"c%d"}`, rapid.IntRange(0, 99).Draw(t, "city")))
		}
		raw, err := json.Marshal(text(t))
		if err != nil {
			t.Fatalf("make a JSON string: %v", err)
		}
		return event.ToolValue(raw)
	})
}

// Event generates events of every tag with a complete envelope and sometimes unknown fields.
func Event() *rapid.Generator[event.Event] {
	return rapid.Custom(func(t *rapid.T) event.Event {
		n := rapid.IntRange(1, 20_000).Draw(t, "counter")
		e := event.Event{
			ID:            event.FormatID("demo", n),
			Timestamp:     moment(t),
			ContextName:   "demo",
			ClientEventID: rapid.SampledFrom([]string{"", "client-1", "ключ"}).Draw(t, "client id"),
			Body:          Body().Draw(t, "body"),
		}
		if n > 1 {
			e.ParentID = event.FormatID("demo", n-1)
		}
		if rapid.Bool().Draw(t, "has extra") {
			e.Extra = rapid.MapOfN(rapid.StringMatching(`x-[a-z<"]{1,8}`), Value(), 1, 3).Draw(t, "extra")
		}
		return e
	})
}

func text(t *rapid.T) string { return rapid.StringN(0, 12, 40).Draw(t, "text") }

func name(t *rapid.T) string { return rapid.StringMatching(`[a-z][a-z0-9-]{0,9}`).Draw(t, "name") }

func moment(t *rapid.T) time.Time {
	return Epoch.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "age")))
}
