package contexts_test

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.temporal.io/sdk/activity"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func unconnected(t *testing.T) *contexts.Connection {
	t.Helper()
	temporal, err := sdkclient.NewLazyClient(sdkclient.Options{})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	return &contexts.Connection{Temporal: temporal, Archive: archive.New(blobstest.New(t).Store)}
}

func TestOptionsThatCannotWorkAreRejected(t *testing.T) {
	models := llm.New(llm.Options{})
	for want, options := range map[string]contexts.Options{
		"Options.Models is missing":                {},
		"Options.Tools is a nil *tool.Set":         {Models: models, Tools: (*tool.Set)(nil)},
		`Options.Part is "everything" (want "", `:  {Models: models, Part: "everything"},
		"neither Before, After nor OnEvent is set": {Models: models, Hooks: []hook.Hook{{Name: "idle"}}},
	} {
		_, err := unconnected(t).NewWorker(options)
		require.ErrorContains(t, err, want)
	}
	_, err := new(contexts.Connection).NewWorker(contexts.Options{Models: models})
	require.ErrorContains(t, err, "the connection has no blob store (make it with Connect)")
}

func TestAWorkerRequiresABlobStore(t *testing.T) {
	t.Setenv("BLOB_URL", "")
	for _, config := range []client.Config{{}, {BlobURL: "none"}, {Temporal: &sdkclient.Options{}}} {
		_, err := contexts.Connect(t.Context(), config)
		require.ErrorContains(t, err, "connect: no blob store (set Config.BlobURL or BLOB_URL")
	}
}

type meters struct {
	noop.MeterProvider
	meter
}

func (m *meters) Meter(string, ...metric.MeterOption) metric.Meter { return &m.meter }

// meter counts the callbacks.
type meter struct {
	noop.Meter
	registered int
}

func (m *meter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	m.registered++
	return noop.Registration{}, nil
}

func TestAWorkerThatIsNotStartedMeasuresNothing(t *testing.T) {
	conn, counted := unconnected(t), &meters{}
	conn.Meters, conn.SearchAttributes = counted, true
	_, err := conn.NewWorker(contexts.Options{Models: llm.New(llm.Options{})})
	require.NoError(t, err)
	require.Zero(t, counted.registered)
}

func TestRegistrationsWithNamesOfContextsPanic(t *testing.T) {
	w, err := unconnected(t).NewWorker(contexts.Options{Models: llm.New(llm.Options{})})
	require.NoError(t, err)
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(doc), "\n//", "")
	workflowNames := []string{wire.WorkflowType, wire.WorkflowSend, wire.WorkflowBudget, wire.WorkflowEvaluate, wire.WorkflowOffer, wire.WorkflowDelete}
	require.Contains(t, text, "workflows "+enumeration(workflowNames))
	for _, name := range workflowNames {
		require.Panics(t, func() {
			w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: name})
		}, name)
	}
	var activityNames []string
	for method := range reflect.TypeFor[*activities.Activities]().Methods() {
		activityNames = append(activityNames, method.Name)
	}
	require.Contains(t, text, "activities "+enumeration(activityNames))
	for _, name := range activityNames {
		require.Panics(t, func() {
			w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: name})
		}, name)
	}
}

func enumeration(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
