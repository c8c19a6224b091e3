package reducer

// Phase is the state of the running request, or of the session if no request runs.
type Phase string

// Phases of a [Session].
const (
	PhaseEnded    Phase = "ended" // input starts the next session
	PhaseIdle     Phase = "idle"
	PhaseRunning  Phase = "running"  // an attempt is scheduled, or a retry waits for its time
	PhaseStopping Phase = "stopping" // the attempt was asked to stop
	PhaseCalling  Phase = "calling"  // an answer has tool calls without a result
)

// Phase derives the phase.
func (s Session) Phase() Phase {
	switch r := s.Request; {
	case r == nil && s.Ended:
		return PhaseEnded
	case r == nil:
		return PhaseIdle
	case len(r.Calls) > 0:
		return PhaseCalling
	case r.Stop != "":
		return PhaseStopping
	default:
		return PhaseRunning
	}
}
