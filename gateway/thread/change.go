package thread

import "github.com/seed-9ed7edd4/chronicle/event"

// Change is a change of a [Thread]: one of the types below.
type Change any

type (
	// Said adds a message of the user.
	Said struct{ User *User }

	// Began begins an attempt.
	Began struct {
		Request *Request
		Step    *Step // nil: it does not answer
	}

	// Grew adds a piece to the text of a step, or to its reasoning.
	Grew struct {
		Step        *Step
		IsReasoning bool
		Offset      int // length before
		Delta       string
	}

	// Restarted replaces the text of a running step, which grows again from its beginning.
	Restarted struct{ Step *Step }

	// Answered completes the text of a step, after the rest of it.
	Answered struct {
		Step       *Step
		IsReplaced bool // the recorded text does not continue the one that grew
	}

	// Abandoned ends an attempt without an answer. What it said is not in the log.
	Abandoned struct {
		Step  *Step
		Usage event.Usage
	}

	// Used counts the usage of an attempt. It precedes what else its end changes.
	Used struct {
		Request *Request
		Usage   event.Usage
	}

	// Called adds a call.
	Called struct{ Call *Call }

	// Progressed replaces the progress of a call.
	Progressed struct{ Call *Call }

	// Asked requests an approval of a call.
	Asked struct{ Call *Call }

	// Decided decides about a call.
	Decided struct{ Call *Call }

	// Returned adds the result of a call.
	Returned struct {
		Call   *Call
		IsLate bool // it replaces an earlier one
	}

	// Ended ends a request.
	Ended struct{ Request *Request }
)
