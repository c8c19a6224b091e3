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
		d.setTimer(s, in)
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
		if reason := d.unsupported(in.Events); reason != "" { // even if the events are duplicates
			d.reopen()
			d.rejectEvents(reason, in.Events)
		} else if d.reusesID(in.Events) {
			d.reopen()
			d.rejectEvents(event.KeyReused, in.Events)
		} else if events := d.deduplicate(in.Events); len(events) > 0 {
			d.reopen()
			d.receive(events)
		}
	case Refused:
		d.reopen()
		d.reject(in.Reason, in.Input, in.ClientEventID)
	case RequestStarted:
		if d.isRunning(in.Attempted) {
			d.attemptStarted(in)
		}
	case RequestEnded:
		if d.isRunning(in.Attempted) {
			d.requestEnded(in)
		}
	case ToolEnded:
		d.toolEnded(in)
	case Woken:
		d.expireCalls()
	case InterruptAsked:
		d.interrupt()
	case Continued:
		d.continued(in)
	case CloseAsked:
		d.close(in.Reason)
	}
}

// isRunning reports whether an attempt can belong to the running request. In PhaseCalling, none can.
func (d *decision) isRunning(a Attempted) bool {
	return d.Request != nil && d.Request.ID == a.RequestID && d.Phase() != PhaseCalling
}

func (d *decision) perform(effect Effect) { d.effects = append(d.effects, effect) }

func (d *decision) receive(events []event.Event) {
	if reason := d.rejection(events); reason != "" {
		d.rejectEvents(reason, events)
		return
	}
	before, phase := d.Trigger, d.Phase()
	d.recordEvents(events...)
	if phase == PhaseCalling {
		d.receivedWhileCalling()
		return
	}
	if d.Trigger == "" {
		return
	}
	switch d.Phase() {
	case PhaseIdle:
		d.startRequest()
	case PhaseDebouncing:
		if d.policy().Interrupts && d.Trigger != before && d.Request.Compaction == nil {
			d.perform(TellRequest{RequestID: d.Request.ID, Through: d.Trigger})
		}
	case PhaseAnswering:
		d.interruptIfOutdated()
	}
}
