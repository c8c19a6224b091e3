package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
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
		"the rules of 0.1.0":           {reducer.Rules1, "SessionEnded done"},
		"the rules of a later release": {laterRules, "SessionEnded closed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
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

// outcome is an update of the test environment, and whether it was rejected.
type outcome struct{ err error }

func (*outcome) Accept()            {}
func (o *outcome) Reject(err error) { o.err = err }
func (o *outcome) Complete(_ any, err error) {
	if o.err == nil {
		o.err = err
	}
}

func TestAppendedInputIsValidatedByTheRulesOfTheRun(t *testing.T) {
	for name, test := range map[string]struct {
		rules reducer.Rules
		want  []string
	}{
		"the rules of 0.1.0": {reducer.Rules1, []string{"UserMessage Hello"}},
		"the current rules":  {reducer.CurrentRules, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(activities.OpenResult{Rules: test.rules}, nil).Once()
			var got outcome
			w.at(time.Minute, func() {
				w.UpdateWorkflow(wire.UpdateAppend, "", &got, map[string]any{
					"_tag": "UserMessage", "content": "Hello", "triggersTurn": false, "settings": "dark",
				})
			})
			w.at(time.Hour, w.close)
			w.run(append(append([]string{"SessionStarted"}, test.want...), "SessionEnded done")...)
			if test.want == nil {
				require.ErrorContains(t, got.err, "UserMessageEvent.settings: want an object, got a string")
			} else {
				require.NoError(t, got.err)
			}
		})
	}
}
