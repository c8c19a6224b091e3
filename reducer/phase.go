package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// Phase is the state of the running request, or of the session if no request runs. The
// package documentation lists all transitions.
type Phase string

const (
	// PhaseEnded: the session has ended. Input starts the next session.
	PhaseEnded Phase = "ended"
	// PhaseIdle: no request runs.
	PhaseIdle Phase = "idle"
	// PhaseDebouncing: a request runs, but the session knows of no attempt. The request
	// is in its quiet period, waits for a worker, or was sent a moment ago.
	PhaseDebouncing Phase = "debouncing"
	// PhaseAnswering: an attempt was sent to a provider.
	PhaseAnswering Phase = "answering"
	// PhaseCalling: an answer has tool calls without a result.
	PhaseCalling Phase = "calling"
	// PhaseInterrupting: new input asked an attempt to stop. An attempt that includes
	// the input makes the stop obsolete.
	PhaseInterrupting Phase = "interrupting"
	// PhaseWithdrawing: a person or a close cancelled the request while debouncing.
	PhaseWithdrawing Phase = "withdrawing"
	// PhaseCancelling: a person or a close cancelled an attempt.
	PhaseCancelling Phase = "cancelling"
)

// Phase derives the phase from the persisted fields. It is not persisted itself, so that
// sessions packed by older workers have one.
func (s Session) Phase() Phase {
	r := s.Request
	if r == nil {
		if s.Ended {
			return PhaseEnded
		}
		return PhaseIdle
	}
	isSent := r.Through != ""
	switch {
	case len(r.Calls) > 0:
		return PhaseCalling
	case r.Stop == event.ReasonCancelled && isSent:
		return PhaseCancelling
	case r.Stop == event.ReasonCancelled:
		return PhaseWithdrawing
	case r.Stop != "":
		return PhaseInterrupting
	case isSent:
		return PhaseAnswering
	default:
		return PhaseDebouncing
	}
}

// IsSent reports whether the session knows of an attempt of the running request.
func (p Phase) IsSent() bool {
	return p == PhaseAnswering || p == PhaseCalling || p == PhaseInterrupting || p == PhaseCancelling
}

// IsStopping reports whether the running request was asked to stop.
func (p Phase) IsStopping() bool {
	return p == PhaseInterrupting || p == PhaseWithdrawing || p == PhaseCancelling
}
