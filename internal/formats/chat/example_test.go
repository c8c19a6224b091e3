package chat_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

func ExampleRead() {
	const foreign = `
{"_tag":"SystemPrompt","content":"Be brief."}
{"_tag":"UserMessage","content":"Hello","mood":"good"}
`
	for e, err := range chat.Read(strings.NewReader(foreign), "demo", time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		line, _ := e.MarshalJSON()
		fmt.Println(string(line))
	}
	// Output:
	// {"_tag":"SystemPromptEvent","id":"demo:0001","timestamp":"2026-01-02T15:04:05Z","contextName":"demo","content":"Be brief."}
	// {"_tag":"UserMessageEvent","id":"demo:0002","timestamp":"2026-01-02T15:04:05Z","contextName":"demo","parentEventId":"demo:0001","content":"Hello","mood":"good"}
}

const visit = `{"messages":[
	{"role": "system", "content": "You are helpful."},
	{"role": "user", "content": [
		{"type": "text", "text": "# Which city?\nIs it warm there?"},
		{"type": "image_url", "image_url": {"url": "https://example.com/tower.png"}},
		{"type": "file", "file": {"filename": "map.pdf", "file_data": "UERG"}}
	]},
	{"role": "assistant", "content": null, "tool_calls": [
		{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Paris\"}"}}
	]},
	{"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"},
	{"role": "assistant", "content": "Paris:\n` + "```" + `\n18 °C"}
]}`

func ExampleWrite() {
	log := chat.Read(strings.NewReader(visit), "demo", time.Time{})
	if _, err := chat.Write(os.Stdout, chat.Markdown, log, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # demo
	//
	// ## System
	//
	// > You are helpful.
	//
	// ## User
	//
	// > # Which city?
	// > Is it warm there?
	//
	// - Attached: `https://example.com/tower.png, image/png`
	// - Attached: `map.pdf (blob), application/pdf, 3 bytes` [file](data:application/pdf;base64,UERG)
	//
	// ## Assistant
	//
	// Calls `weather` as `call_1`:
	//
	// ```json
	// {
	//   "city": "Paris"
	// }
	// ```
	//
	// ## Tool
	//
	// Result of `call_1`:
	//
	// ```
	// 18 degrees
	// ```
	//
	// ## Assistant
	//
	// > Paris:
	// > ```
	// > 18 °C
}
