package event

import (
	"fmt"
	"log/slog"
)

// SessionStarted starts a session, which a [SessionEnded] ends.
//
//doc:effect when a session begins
type SessionStarted struct {
	// The number of events of earlier sessions.
	LoadedEventCount int `json:"loadedEventCount" schema:"min=0"`
	// PreviousRunID is the Temporal run before the one in which the session starts. It is "" if there is none,
	// in the first session of a fork, and if an earlier session ended in the same run.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ForkedFrom is the event of the original context that a fork continues, set in its first session.
	ForkedFrom string `json:"forkedFrom,omitempty" schema:"is=EventID"`
}

const TagSessionStarted Tag = "SessionStartedEvent"

func (SessionStarted) Tag() Tag { return TagSessionStarted }

func (b SessionStarted) validate() error {
	if b.LoadedEventCount < 0 {
		return fieldf("loadedEventCount", "want 0 or more, got %d", b.LoadedEventCount)
	}
	if b.ForkedFrom != "" && Counter(b.ForkedFrom) == 0 {
		return fieldf("forkedFrom", "want the id of an event, like %s, got %s", FormatID("demo", 7), quote(b.ForkedFrom))
	}
	return nil
}

func (b SessionStarted) Words() (subject, text string) {
	switch {
	case b.LoadedEventCount == 0:
		return "session started", ""
	case b.ForkedFrom != "":
		return "session started", "forked from " + b.ForkedFrom
	}
	return "session started", fmt.Sprintf("continues after %d events", b.LoadedEventCount)
}

func (b SessionStarted) Line() Line {
	return Line{slog.LevelInfo, "context opened", []any{"loaded_events", b.LoadedEventCount, "previous_run", b.PreviousRunID, "forked_from", b.ForkedFrom}}
}

func (SessionStarted) example() Body {
	return SessionStarted{LoadedEventCount: 2, PreviousRunID: "run-1", ForkedFrom: "other:0007"}
}

// SessionEnded ends a session.
//
//doc:effect when it ends; `reason` is `closed`, that of the client, or `idle`
type SessionEnded struct {
	Reason string `json:"reason"`
}

const TagSessionEnded Tag = "SessionEndedEvent"

func (SessionEnded) Tag() Tag { return TagSessionEnded }

func (SessionEnded) validate() error { return nil }

func (b SessionEnded) Words() (subject, text string) { return "session ended", b.Reason }
func (SessionEnded) Line() Line                      { return Line{slog.LevelInfo, "context closed", nil} }

func (SessionEnded) example() Body { return SessionEnded{Reason: "closed"} }
