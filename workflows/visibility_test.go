package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// attribute is the value in an update of search attributes; nil: none.
func attribute(all temporal.SearchAttributes, name string) any {
	for key, value := range all.GetUntypedValues() {
		if key.GetName() == name {
			return value
		}
	}
	return nil
}

func (w *testRun) setsDetails(at time.Duration, details map[string]any) {
	details["_tag"] = "SetDetails"
	w.at(at, func() { w.SignalWorkflow(wire.SignalEvent, details) })
}

// shows runs a context and returns the values in each update of its search attributes.
func (w *testRun) shows(hasDetails bool) (titles, labels []any) {
	result := opened
	result.SearchAttributes, result.DetailAttributes = true, hasDetails
	w.OnActivity(acts.Open, mock.Anything, mock.Anything).Return(result, nil).Once()
	w.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		all := args.Get(0).(temporal.SearchAttributes)
		require.NotNil(w.t, attribute(all, wire.AttributeStatus))
		titles = append(titles, attribute(all, wire.AttributeTitle))
		labels = append(labels, attribute(all, wire.AttributeLabels))
	}).Return(nil)
	w.setsDetails(time.Minute, map[string]any{"title": "A trip", "labels": map[string]string{"team": "a", "place": "Rome"}})
	w.setsDetails(2*time.Minute, map[string]any{"archived": true})
	w.setsDetails(3*time.Minute, map[string]any{"title": "Another", "labels": map[string]string{}})
	w.setsDetails(3*time.Minute+time.Second, map[string]any{"title": ""})
	w.at(time.Hour, w.close)
	w.ExecuteWorkflow(wire.WorkflowType)
	require.NoError(w.t, w.GetWorkflowError())
	return titles, labels
}

// The last updates remove the title, and close the context.
func TestSearchAttributesShowDetailsAtOnce(t *testing.T) {
	titles, labels := newRun(t).shows(true)
	require.Equal(t, []any{nil, "A trip", "Another", nil, nil}, titles)
	require.Equal(t, []any{nil, []string{"place=Rome", "team=a"}, nil, nil, nil}, labels)
}

// Setting unregistered search attributes would block the context.
func TestANamespaceMayLackTheAttributesOfDetails(t *testing.T) {
	titles, labels := newRun(t).shows(false)
	require.Equal(t, []any{nil, nil}, titles)
	require.Equal(t, []any{nil, nil}, labels)
}
