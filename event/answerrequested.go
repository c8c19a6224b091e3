package event

import "log/slog"

// AnswerRequested requests an answer to the conversation as it stands: its newest message is one of the user, or the
// result of a tool. It repeats a request that failed, and asks a fork for another answer.
//
//doc:effect none; requests an answer to the conversation as it stands. It is rejected while a request is running, and after an answer
type AnswerRequested struct {
	// Settings are those of the turn, as in a [UserMessage].
	Settings *RequestSettings `json:"settings,omitempty"`
}

const TagAnswerRequested Tag = "AnswerRequestedEvent"

func (AnswerRequested) Tag() Tag { return TagAnswerRequested }

func (b AnswerRequested) validate() error {
	if b.Settings == nil {
		return nil
	}
	return within("settings", b.Settings.validate())
}

// Triggers reports true: the model answers.
func (AnswerRequested) Triggers() bool { return true }

func (b AnswerRequested) Words() (subject, text string) { return "answer requested", "" }
func (AnswerRequested) Line() Line                      { return Line{slog.LevelInfo, "answer requested", nil} }

func (AnswerRequested) example() Body {
	return AnswerRequested{Settings: &RequestSettings{Temperature: new(0.0)}}
}
