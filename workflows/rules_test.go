package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/workflows"
)

// laterRules are those of a later release, in which close ignores the reason of its sender.
const laterRules = reducer.CurrentRules + 1

// TestARunKeepsItsRules runs the same code with two values of the rules. The result of
// Open, which is in the history, selects one.
func TestARunKeepsItsRules(t *testing.T) {
	for name, test := range map[string]struct {
		rules reducer.Rules
		want  string
	}{
		"the current rules":            {reducer.CurrentRules, "SessionEnded done"},
		"the rules of a later release": {laterRules, "SessionEnded closed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRun(t)
			step := reducer.NewStepper(w.reduce)
			w.RegisterWorkflowWithOptions(workflows.WithStep(func(s reducer.Session, in reducer.Input) (reducer.Session, []reducer.Effect) {
				if asked, ok := in.(reducer.CloseAsked); ok && s.Rules >= laterRules {
					asked.Reason = ""
					in = asked
				}
				return step(s, in)
			}), workflow.RegisterOptions{Name: wire.WorkflowType, DisableAlreadyRegisteredCheck: true})
			w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{Rules: test.rules}, nil).Once()
			w.at(time.Minute, w.close)
			w.run("SessionStarted", test.want)
		})
	}
}
