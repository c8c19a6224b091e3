package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// withTools replaces the probes by Go functions.
func (w *world) withTools(tools ...tool.Tool) func(*contexts.Options) {
	w.t.Helper()
	set, err := tool.NewSet(tool.Options{Store: w.archive.Store()}, tools...)
	require.NoError(w.t, err)
	return func(o *contexts.Options) { o.Tools = set }
}

type namedLog struct {
	Name string `json:"name"`
}

var (
	leftOut  = regexp.MustCompile(`\n\n\[The result has \d+ bytes\. Bytes (\d+) to (\d+) are left out: read them with the tool read_result, ref "([0-9a-f]+)" and an offset\.\]\n\n`)
	partRead = regexp.MustCompile(`\n\n\[bytes (\d+) to (\d+) of \d+\]$`)
)

// The model reads what the first result leaves out, one part in each step, until it has everything.
func TestTheModelReadsALargeResultInParts(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 20_000 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	whole := strings.Join(lines, "\n")
	require.Greater(t, len(whole), 200_000)
	var head, tail, ref string // head grows
	var left int               // offset of tail
	w := newWorld(t, llmtest.Func(func(r llmtest.Request) llmtest.Step {
		results := r.Results()
		if len(results) == 0 {
			return llmtest.Calls(llmtest.Call{ID: "log", Name: "read_log", Arguments: `{"name":"nightly"}`}).Offered("read_log", tool.ReadResult)
		}
		var from int
		if note := leftOut.FindStringSubmatch(results[0]); note != nil {
			head, tail, _ = strings.Cut(results[0], note[0])
			from, _ = strconv.Atoi(note[1])
			left, _ = strconv.Atoi(note[2])
			ref = note[3]
		} else if part := partRead.FindStringSubmatch(results[0]); part != nil {
			head += strings.TrimSuffix(results[0], part[0])
			from, _ = strconv.Atoi(part[2])
		}
		if from == left {
			return llmtest.Answer("Read.")
		}
		return llmtest.Calls(llmtest.Call{
			ID: fmt.Sprint("part-", from), Name: tool.ReadResult,
			Arguments: fmt.Sprintf(`{"ref":%q,"offset":%d,"limit":%d}`, ref, from, min(24_000, left-from)),
		})
	}))
	readLog := func(context.Context, namedLog) (string, error) { return whole, nil }
	w.worker(w.withTools(tool.Must(tool.New("read_log", "Read a log", readLog))))
	c := w.open("large-result")
	w.setTools(c, "read_log")
	require.Equal(t, "Read.", deltaText(w.say(c, "What does the log say?")))
	require.True(t, head+tail == whole, "the parts are the result")
	results := bodiesOf[event.ToolResult](w, c)
	require.Greater(t, len(results), 5)
	for _, r := range results {
		require.False(t, r.IsError, string(r.Error))
		require.LessOrEqual(t, len(r.Value), tool.DefaultMaxResult*5/4, "the log has what the model receives, as JSON")
	}
	w.replay(c, "")
}
