package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"

	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestVerifyReportsADamagedArchive(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, environment{timeout: buildTimeout}, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("verified")
	for w.say(c, "Hello"); len(w.runs(c)) < 3; {
		w.say(c, "Hello again")
	}
	require.Regexp(t, `^ok: \d+ events in [2-9] segments, \d+ in the history of the current run\n$`, w.starter("", "verify", "-n", c.Name()))

	runs := w.runs(c)
	first := runs[len(runs)-1]
	bucket, err := blob.OpenBucket(w.ctx, w.blobURL)
	require.NoError(t, err)
	defer bucket.Close()
	entry, err := bucket.List(&blob.ListOptions{Prefix: fmt.Sprintf("default/contexts/%s/%s/%012d-", c.Name(), first, 1)}).Next(w.ctx)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(w.ctx, entry.Key))
	out, errOut, err := w.tryStarter("", "verify", "-n", c.Name())
	require.Error(t, err)
	require.Regexp(t, fmt.Sprintf("^contexts/%s/%s/: events 1 to [0-9]+ are missing\n$", c.Name(), first), out)
	require.Contains(t, errOut, "problems found: 1")
}
