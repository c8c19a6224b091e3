package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// Phase is the state of the running request, or of the session if no request runs.
type Phase string

// Phases of a [Session].
const (
	PhaseEnded        Phase = "ended" // input starts the next session
	PhaseIdle         Phase = "idle"
	PhaseDebouncing   Phase = "debouncing"   // quiet period, or no attempt is reported yet
	PhaseAnswering    Phase = "answering"    // an attempt was sent to a provider
	PhaseCalling      Phase = "calling"      // an answer has tool calls without a result
	PhaseInterrupting Phase = "interrupting" // new input stops an attempt that lacks it
	PhaseWithdrawing  Phase = "withdrawing"  // cancelled by an interrupt or a close while debouncing
	PhaseCancelling   Phase = "cancelling"   // an attempt is cancelled by an interrupt or a close
)

// Phase derives the phase. It is not persisted, so sessions of older workers have one, too.
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
