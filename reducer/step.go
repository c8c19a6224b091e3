package reducer

import (
	"slices"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Stepper is the signature of [Step].
type Stepper func(Session, Input) (Session, []Effect)

// Step applies an input to a session, with [Reduce].
func Step(s Session, in Input) (Session, []Effect) { return NewStepper(Reduce)(s, in) }

// NewStepper returns a [Step] with another reducer.
func NewStepper(reduce Reducer) Stepper {
	return func(s Session, in Input) (Session, []Effect) {
		d := decision{Session: s, at: in.at(), reduce: reduce}
		if s.Request != nil {
			request := *s.Request
			request.Calls = slices.Clone(request.Calls)
			d.Request = &request
		}
		d.apply(in)
		d.setTimer(in)
		return d.Session, d.effects
	}
}

type decision struct {
	Session
	at      time.Time
	reduce  Reducer
	effects []Effect
}

func (d *decision) apply(in Input) {
	switch in := in.(type) {
	case Opened:
		d.open(in)
	case Received:
		d.received(in)
	case Malformed:
		d.reopen()
		d.reject(in.Reason, in.Input, in.ClientEventID)
	case AttemptEnded:
		d.attemptEnded(in)
	case ToolEnded:
		d.toolEnded(in)
	case Woken:
		d.wake()
	case InterruptAsked:
		d.interrupt()
	case Continued:
		d.continued(in)
	case CloseAsked:
		d.close(in)
	}
}

func (d *decision) perform(effect Effect) { d.effects = append(d.effects, effect) }

func (d *decision) received(in Received) {
	if d.reusesID(in.Events) {
		d.reopen()
		d.rejectEvents(event.KeyReused, in.Events)
		return
	}
	events := d.deduplicate(in.Events)
	if len(events) == 0 {
		return
	}
	d.reopen()
	if reason := d.rejection(events); reason != "" {
		d.rejectEvents(reason, events)
		return
	}
	phase := d.Phase()
	d.recordEvents(events...)
	switch phase {
	case PhaseIdle:
		if d.Trigger != "" {
			d.startRequest()
		}
	case PhaseRunning, PhaseStopping:
		d.receivedWhileRunning()
	case PhaseCalling:
		d.receivedWhileCalling()
	}
}
