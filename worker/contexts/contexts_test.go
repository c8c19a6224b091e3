package contexts_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func TestStartReportsOptionsThatCannotWork(t *testing.T) {
	temporal, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	defer temporal.Close()
	models, logs := llm.New(llm.Options{}), archive.New(blobstest.New(t).Store)
	for want, options := range map[string]contexts.Options{
		"Options.Archive is missing":              {Models: models},
		"Options.Models is missing":               {Archive: logs},
		"Options.Tools is a nil *tool.Set":        {Archive: logs, Models: models, Tools: (*tool.Set)(nil)},
		`Options.Part is "everything" (want "", `: {Archive: logs, Models: models, Part: "everything"},
	} {
		w := contexts.NewWorker(temporal, options)
		require.ErrorContains(t, w.Start(), want)
		require.ErrorContains(t, w.Run(nil), want)
		w.Stop()
	}
}
