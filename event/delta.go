package event

// TextDelta is a piece of a running answer. It is streamed and never recorded: it has no id and no timestamp.
//
//doc:effect a piece of streamed text. A reader that was disconnected reads the complete answer from the log. `reset` discards the text and the reasoning received so far
type TextDelta struct {
	RequestID string `json:"requestId" schema:"id,min=1"`
	Attempt   int    `json:"attempt" schema:"min=1"` // the attempt of the request, from 1
	// The index in the attempt, from 0; coalesced deltas leave gaps.
	Index int    `json:"index" schema:"min=0"`
	Delta string `json:"delta"` // is appended to the text, or to the reasoning, of the attempt
	// Whether Delta replaces the text and the reasoning received before.
	Reset bool `json:"reset,omitempty"`
	// The newest event that the request included: the answer follows it.
	ThroughEventID string `json:"throughEventId,omitempty" schema:"id"`
}

const TagTextDelta Tag = "TextDeltaEvent"

func (TextDelta) Tag() Tag          { return TagTextDelta }
func (b TextDelta) Request() string { return b.RequestID }

func (b TextDelta) validate() error { return requestID(b.RequestID) }

func (b TextDelta) Words() (subject, text string) { return "delta", b.Delta }

func (TextDelta) example() Body {
	return TextDelta{RequestID: "demo:r0001", Attempt: 1, Index: 0, Delta: "Hi", ThroughEventID: "demo:0001"}
}

// ReasoningDelta is a piece of the reasoning of a running answer. Within an attempt, it shares one sequence of indexes with
// [TextDelta]. It is streamed and never recorded.
//
//doc:effect a piece of streamed reasoning. Within an attempt, both kinds of deltas share one sequence of indexes
type ReasoningDelta TextDelta

const TagReasoningDelta Tag = "ReasoningDeltaEvent"

func (ReasoningDelta) Tag() Tag          { return TagReasoningDelta }
func (b ReasoningDelta) Request() string { return b.RequestID }

func (b ReasoningDelta) validate() error { return requestID(b.RequestID) }

func (b ReasoningDelta) Words() (subject, text string) { return "reasoning delta", b.Delta }

func (ReasoningDelta) example() Body {
	return ReasoningDelta{RequestID: "demo:r0001", Attempt: 1, Index: 0, Delta: "The user", ThroughEventID: "demo:0001"}
}
