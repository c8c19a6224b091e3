package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"

	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

func TestALogIsWholeUntilItsArchiveIsDamaged(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, surroundings{patience: building}, llmtest.Func(echo))
	w.worker(shortRuns)
	c := w.open("verified")
	for w.say(c, "Hello"); len(w.runs(c)) < 3; {
		w.say(c, "Hello again")
	}
	require.Regexp(t, `^ok: \d+ events in 2 segments, [1-9]\d* in the running history\n$`, w.starter("", "verify", "-n", c.Name()))

	segments, err := w.archive.Segments(w.ctx, c.Name())
	require.NoError(t, err)
	bucket, err := blob.OpenBucket(w.ctx, w.blobURL)
	require.NoError(t, err)
	defer bucket.Close()
	require.NoError(t, bucket.Delete(w.ctx, fmt.Sprintf("default/contexts/%s/%012d-%012d.json", c.Name(), 1, segments[0].Last)))
	out, complaint, err := w.tryStarter("", "verify", "-n", c.Name())
	require.Error(t, err)
	require.Equal(t, fmt.Sprintf("contexts/%s/: events 1 to %d are missing\n", c.Name(), segments[0].Last), out)
	require.Contains(t, complaint, "has problems: 1")
}
