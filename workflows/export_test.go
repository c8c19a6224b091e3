package workflows

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func Decode(name string, payloads *commonpb.Payloads, now time.Time) reducer.Input {
	return decode(signal{name: name, payloads: payloads}, now, wire.TaskQueue)
}

// WithStep is New with another step function.
func WithStep(step reducer.Stepper) func(workflow.Context, converter.RawValue) error {
	return newWorkflow(step, nil, "")
}

var (
	Details = details
	Fitting = fitting
	SizeOf  = sizeOf
)
