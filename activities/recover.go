package activities

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// RecoverTimeout bounds one attempt of [Activities.Recover], with the wait for other loads of the worker.
const RecoverTimeout = 2 * time.Minute

// maxRecovered bounds a result of Recover in bytes, apart from its last input.
const maxRecovered = 4 << 20

// RecoverInput is the input of [Activities.Recover].
type RecoverInput struct {
	ContextName string     `json:"contextName"`
	After       wire.Taken `json:"after"`
}

// RecoverResult is the result of [Activities.Recover].
type RecoverResult struct {
	Inputs     []RecoveredInput `json:"inputs,omitempty"` // in the order of the run
	IsComplete bool             `json:"isComplete,omitempty"`
	IsGone     bool             `json:"isGone,omitempty"` // the server has no history of the run any more
}

// RecoveredInput is input that an earlier run accepted and did not record.
type RecoveredInput struct {
	Name     string `json:"name,omitempty"`     // of the signal; "": an update
	UpdateID string `json:"updateId,omitempty"` // "": a signal
	Payloads []byte `json:"payloads,omitempty"` // a serialized temporal.api.common.v1.Payloads, see package references
	Signals  int    `json:"signals"`            // as in [wire.Taken]
}

// Recover returns a part of the input that an earlier run accepted after a position: the next 4 MiB of it. References
// stay references.
func (a *Activities) Recover(ctx context.Context, in RecoverInput) (result RecoverResult, err error) {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	end, err := a.beginLoad(ctx)
	if err != nil {
		return result, err
	}
	defer end()
	accepted, isComplete, err := a.log.Accepted(ctx, in.ContextName, in.After, maxRecovered, time.Now())
	if errors.Is(err, eventlog.ErrNoContext) {
		return RecoverResult{IsComplete: true, IsGone: true}, nil
	}
	if err != nil {
		return result, err
	}
	result.IsComplete = isComplete
	for _, one := range accepted {
		references.MakeAllInert(one.Payloads.GetPayloads())
		payloads, err := proto.Marshal(one.Payloads)
		if err != nil {
			return result, err
		}
		result.Inputs = append(result.Inputs, RecoveredInput{one.Name, one.UpdateID, payloads, one.Signals})
	}
	return result, nil
}
