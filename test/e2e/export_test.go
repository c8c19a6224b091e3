package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

func TestAnExportCarriesFilesAndResultsToAnotherStore(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Calls(llmtest.Call{ID: "log", Name: "read_log", Arguments: `{"name":"nightly"}`}), llmtest.Answer("Read."))
	readLog := func(context.Context, namedLog) (string, error) {
		return strings.Repeat("all quiet at the quay\n", 5000), nil
	}
	w.worker(w.withTools(tool.Must(tool.New("read_log", "Read a log", readLog))))
	c := w.open("carried")
	w.setTools(c, "read_log")
	picture := strings.Repeat("PNG of the quay ", 1000)
	w.say(c, "What happened?", attached("quay.png", "image/png", picture))
	require.Contains(t, w.starter("", "verify", "-n", c.Name()), "ok: ")
	exported := w.starter("", "export", "-n", c.Name())
	references, errOut, err := w.tryStarter("", "export", "-n", c.Name(), "--no-attachments")
	require.NoError(t, err)
	require.Equal(t, "left out the bytes of 2 references\n", errOut)

	elsewhere := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Answer("Still there."))
	elsewhere.worker()
	copied := elsewhere.open("copied")
	_, errOut, err = elsewhere.tryStarter(references, "import", "-n", copied.Name(), "-")
	require.Error(t, err)
	require.Contains(t, errOut, "the blob store lacks the bytes of 2 events: ")

	elsewhere.starter(exported, "import", "-n", copied.Name(), "-")
	require.Contains(t, elsewhere.starter("", "verify", "-n", copied.Name()), "ok: ")
	again := elsewhere.starter("", "export", "-n", copied.Name())
	require.True(t, strings.HasPrefix(again, strings.ReplaceAll(exported, c.Name(), copied.Name())), "the same log with the same bytes")
	for _, e := range elsewhere.from(copied, "") {
		if e.Tag() == event.TagFileAttachment {
			file, err := copied.Attachment(elsewhere.ctx, e.ID)
			require.NoError(t, err)
			require.Equal(t, picture, string(file.Source.Data))
		}
	}
	elsewhere.say(copied, "Is the picture there?")

	lost := elsewhere.open("lost")
	without := strings.NewReplacer(event.RefOf([]byte(picture)), event.RefOf([]byte("lost"))).Replace(references)
	elsewhere.starter(without, "import", "-n", lost.Name(), "-", "--allow-missing")
	out, errOut, err := elsewhere.tryStarter("", "verify", "-n", lost.Name())
	require.Error(t, err)
	require.Contains(t, out, ": blob "+event.RefOf([]byte("lost"))+" is not in the store\n")
	require.Contains(t, errOut, "problems found: 1")
}
