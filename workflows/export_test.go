package workflows

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"

	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

func Decode(name string, payloads *commonpb.Payloads, now time.Time) reducer.Input {
	return decode(signal{name: name, payloads: payloads}, now, wire.TaskQueue)
}

var (
	Details = details
	Fitting = fitting
)
