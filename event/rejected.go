package event

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// InputRejected records an input that was not accepted.
//
//doc:effect when a signal is invalid, or the context rejects valid input, for example by its delivery policy; `input` is truncated and secrets are removed
type InputRejected struct {
	Reason string `json:"reason"`
	Input  string `json:"input"` // the input, truncated and with secrets redacted
}

const TagInputRejected Tag = "InputRejectedEvent"

func (InputRejected) Tag() Tag { return TagInputRejected }

func (InputRejected) validate() error { return nil }

func (b InputRejected) Words() (subject, text string) { return "input rejected", b.Reason }
func (InputRejected) Line() Line                      { return Line{slog.LevelInfo, "input rejected", nil} }

func (InputRejected) example() Body {
	return InputRejected{Reason: "UserMessageEvent.content: missing", Input: `{"_tag":"UserMessage"}`}
}

// MaxRejectedInput bounds the input in an [InputRejected], in bytes. Longer input is truncated, and a note of its
// size follows.
const MaxRejectedInput = 500

// RedactEvents returns the JSON of events for an [InputRejected], redacted and truncated.
func RedactEvents(events []Event) string {
	var text []byte
	var err error
	if len(events) == 1 {
		text, err = json.Marshal(events[0])
	} else {
		text, err = json.Marshal(events)
	}
	if err != nil {
		return fmt.Sprintf("(%d events)", len(events))
	}
	return Redact(string(text), MaxRejectedInput)
}
