package archive_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

// modelRun is a run of the reference model. Its log is a list of labels.
type modelRun struct {
	run archive.Run
	log []string
}

// The reference model copies the whole log into each run: sessions, continuations, resets
// of any run at any point, resets of resets, and forks, also of a deleted origin.
func TestViewsMatchTheReferenceModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := archive.New(blobstest.New(t).Store)
		contexts := map[string][]*modelRun{}
		labels := 0
		begin := func(name string, run archive.Run, log []string) *modelRun {
			l := &modelRun{run, slices.Clone(log)}
			require.NoError(r, register(t.Context(), a, name, run))
			contexts[name] = append(contexts[name], l)
			return l
		}
		record := func(name string, l *modelRun, events int) {
			first := len(l.log) + 1
			var batch []event.Event
			for i := range events {
				labels++
				label := fmt.Sprint("event ", labels)
				l.log = append(l.log, label)
				batch = append(batch, event.Event{ID: event.FormatID(name, first+i), ContextName: name, Timestamp: eventtest.Epoch, Body: event.UserMessage{Content: label}})
			}
			if events > 0 {
				_, err := a.Write(t.Context(), name, l.run.ID, batch)
				require.NoError(r, err)
			}
		}
		record("demo", begin("demo", archive.Run{ID: "run-0"}, nil), 3)
		for step := range rapid.IntRange(1, 12).Draw(r, "steps") {
			name := "demo"
			if len(contexts["copy"]) > 0 && rapid.Bool().Draw(r, "in the fork") {
				name = "copy"
			}
			runs := contexts[name]
			id := fmt.Sprint("run-", step+1)
			switch base := runs[rapid.IntRange(0, len(runs)-1).Draw(r, "base")]; rapid.SampledFrom([]string{"open", "reset", "reset before it opened", "fork"}).Draw(r, "step") {
			case "open":
				newest := runs[len(runs)-1]
				record(name, begin(name, archive.Run{ID: id, After: len(newest.log), Behind: newest.run.ID}, newest.log), rapid.IntRange(0, 4).Draw(r, "events"))
			case "reset":
				if base.run.Origin != nil {
					continue
				}
				at := rapid.IntRange(base.run.After, len(base.log)).Draw(r, "at")
				record(name, begin(name, archive.Run{ID: id, After: at, Behind: base.run.ID}, base.log[:at]), rapid.IntRange(0, 4).Draw(r, "events"))
			case "reset before it opened":
				if base.run.Origin != nil {
					continue
				}
				run := base.run
				run.ID = id
				record(name, begin(name, run, base.log[:run.After]), rapid.IntRange(0, 4).Draw(r, "events"))
			case "fork":
				if len(contexts["copy"]) > 0 || len(base.log) == 0 {
					continue
				}
				at := rapid.IntRange(1, len(base.log)).Draw(r, "at")
				begin("copy", archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: "demo", RunID: base.run.ID, At: at}}, base.log[:at])
			}
		}
		if len(contexts["copy"]) > 0 && rapid.Bool().Draw(r, "the origin is deleted") {
			require.NoError(r, a.Detach(t.Context(), "copy"))
			_, err := a.Delete(t.Context(), "demo")
			require.NoError(r, err)
			delete(contexts, "demo")
		}
		for name, runs := range contexts {
			folder, err := a.Folder(t.Context(), name)
			require.NoError(r, err)
			for _, l := range runs {
				for _, after := range []int{0, len(l.log) / 2, len(l.log)} {
					parts, err := folder.View(t.Context(), l.run.ID, after)
					require.NoError(r, err)
					got := []string{}
					for e, err := range eventsOf(t.Context(), a, name, parts, after) {
						require.NoError(r, err)
						require.Equal(r, event.FormatID(name, after+len(got)+1), e.ID)
						got = append(got, e.Body.(event.UserMessage).Content)
					}
					require.Equal(r, append([]string{}, l.log[after:]...), got, "%s of %s after %d", l.run.ID, name, after)
				}
			}
			newest, err := folder.Run(t.Context(), "")
			require.NoError(r, err)
			require.Equal(r, runs[len(runs)-1].run.ID, newest.ID)
			for problem, err := range a.Check(t.Context(), name) {
				require.NoError(r, err)
				// The model writes no parents.
				require.Contains(r, problem.Text, "has the parent")
			}
		}
	})
}

func TestOneOfSeveralRunsRegisters(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	var folders [10]*archive.Folder // all listed before the first registration
	for i := range folders {
		var err error
		folders[i], err = a.Folder(t.Context(), "demo")
		require.NoError(t, err)
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for i, folder := range folders {
		all.Go(func() {
			err := folder.Register(t.Context(), archive.Run{ID: fmt.Sprint("run-", i)})
			if err == nil {
				won.Add(1)
			} else if !strings.Contains(err.Error(), "register run run-") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
}

func TestAnUnregisteredRunIsErrNoRun(t *testing.T) {
	a, bucket := written(t, [2]int{1, 3})
	folder, err := a.Folder(t.Context(), "demo")
	require.NoError(t, err)
	_, err = folder.View(t.Context(), "B", 0)
	require.ErrorIs(t, err, archive.ErrNoRun)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: "C", After: 3, Behind: "B"}))
	_, err = logOf(t.Context(), a, "demo", 0)
	require.ErrorIs(t, err, blobs.ErrCorrupt)
	bucket.Set("contexts/demo/runs/000000000002.json", []byte(`{}`))
	_, err = logOf(t.Context(), a, "demo", 0)
	require.ErrorIs(t, err, blobs.ErrCorrupt)
}

// 2,000 segments of 500 runs, at 50 ms per read, take more than 200 s when read in sequence.
func TestALongLogIsReadConcurrently(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	const runs, each = 500, 4
	behind := ""
	for i := range runs {
		folder, err := a.Folder(t.Context(), "demo")
		require.NoError(t, err)
		id := fmt.Sprint("run-", i)
		require.NoError(t, folder.Register(t.Context(), archive.Run{ID: id, After: i * each, Behind: behind}))
		behind = id
		for n := i*each + 1; n <= (i+1)*each; n++ {
			_, err := a.Write(t.Context(), "demo", id, messages("demo", n, n))
			require.NoError(t, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		bucket.SetLatency(50 * time.Millisecond)
		defer bucket.SetLatency(0)
		began := time.Now()
		got, err := counters(t, "demo", read(t.Context(), a, "demo", 0))
		require.NoError(t, err)
		require.Equal(t, "1-2000", got)
		require.Less(t, time.Since(began), 6*time.Second)
	})
}

func TestAFolderNameTellsTheContext(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		_, local := event.CutTenant(eventtest.ContextName().Draw(r, "name"))
		require.Equal(r, local, archive.ContextOf(archive.FolderName(local)))
	})
}

func TestFoldersAreDistinctIgnoringCase(t *testing.T) {
	name, kind := eventtest.ContextName(), rapid.SampledFrom([]string{"contexts", "cursors"})
	rapid.Check(t, func(r *rapid.T) {
		one := name.Draw(r, "one")
		other := name.Draw(r, "other")
		if rapid.Bool().Draw(r, "by case alone") {
			other = strings.ToUpper(one)
		}
		kindOfOne, kindOfOther := kind.Draw(r, "kind of one"), kind.Draw(r, "kind of other")
		a, b := archive.FolderOf(kindOfOne, one), archive.FolderOf(kindOfOther, other)
		require.Equal(r, one == other && kindOfOne == kindOfOther, strings.EqualFold(a, b))
		require.Equal(r, strings.EqualFold(a, b), strings.HasPrefix(strings.ToLower(b), strings.ToLower(a)), "no folder is in another")
		require.NotContains(r, a, "./")
		require.Equal(r, strings.ToLower(a), a)
	})
	require.Less(t, len(archive.FolderOf("contexts", strings.Repeat("X", event.MaxContextName))), 200, "file systems take 255")
}
