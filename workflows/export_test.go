package workflows

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func Decode(name string, payloads *commonpb.Payloads, now time.Time) reducer.Input {
	return decode(signal{name: name, payloads: payloads}, now)
}

// WithStep is New with another step function.
func WithStep(step reducer.Stepper) func(workflow.Context, converter.RawValue) error {
	return newWorkflow(step, Options{})
}

const SpareAttempts = spareAttempts

var Details = details

func pendingEvents(events []event.Event) (out []pendingEvent) {
	for _, e := range events {
		out = append(out, newPendingEvent(e))
	}
	return out
}

func Fitting(events []event.Event) int       { return fitting(pendingEvents(events)) }
func SizeOf(e event.Event) int               { return newPendingEvent(e).size() }
func RecordJSON(events []event.Event) []byte { return recordJSON(pendingEvents(events), nil) }
