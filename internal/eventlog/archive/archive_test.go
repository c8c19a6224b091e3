package archive_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

// messages returns the events first to last of a context, each with its counter as text.
func messages(contextName string, first, last int) []event.Event {
	var events []event.Event
	for n := first; n <= last; n++ {
		e := event.Event{
			ID: event.FormatID(contextName, n), ContextName: contextName, Timestamp: eventtest.Epoch.Add(time.Duration(n) * time.Second),
			Body: event.UserMessage{Content: fmt.Sprintf("<%d>", n)},
		}
		if n > 1 {
			e.ParentID = event.FormatID(contextName, n-1)
		}
		events = append(events, e)
	}
	return events
}

// written returns an archive with segments of the context demo.
func written(t testing.TB, spans ...[2]int) (*archive.Archive, *blobstest.Bucket) {
	t.Helper()
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	for _, s := range spans {
		write(t, a, "demo", s[0], s[1])
	}
	return a, bucket
}

func write(t testing.TB, a *archive.Archive, contextName string, first, last int) archive.Segment {
	t.Helper()
	segment, err := put(t.Context(), a, contextName, messages(contextName, first, last))
	require.NoError(t, err)
	return segment
}

// counters returns which events were read, as "1-50", and the error at the end. It fails
// on a gap or another context.
func counters(t testing.TB, contextName string, events iter.Seq2[event.Event, error]) (string, error) {
	t.Helper()
	first, last := 0, 0
	for e, err := range events {
		if err != nil {
			return formatRange(first, last), err
		}
		n := event.Counter(e.ID)
		if first == 0 {
			first, last = n, n-1
		}
		require.Equal(t, last+1, n)
		require.Equal(t, contextName, e.ContextName)
		last = n
	}
	return formatRange(first, last), nil
}

func formatRange(first, last int) string {
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", first, last)
}

func TestEventsReturnsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := eventtest.Log("demo").Draw(r, "log")
		for i := range log {
			if rapid.IntRange(0, 9).Draw(r, "has extra") == 0 {
				log[i].Extra = map[string]json.RawMessage{"x-new": json.RawMessage(`{"a":["<"]}`)}
			}
		}
		a := archive.New(blobstest.New(t).Store)
		// Segments of any length, written up to three times, as by writers that were killed.
		for range rapid.IntRange(1, 3).Draw(r, "writers") {
			for begin := 0; begin < len(log); {
				end := rapid.IntRange(begin+1, len(log)).Draw(r, "end")
				_, err := put(t.Context(), a, "demo", log[begin:end])
				require.NoError(r, err)
				begin = end
			}
		}
		require.Equal(r, len(log), archivedThrough(t, a, "demo"))
		after := rapid.IntRange(0, len(log)).Draw(r, "after")
		i := after
		for e, err := range read(t.Context(), a, "demo", after) {
			require.NoError(r, err)
			require.Equal(r, log[i], e)
			i++
		}
		require.Equal(r, len(log), i)
		for problem, err := range a.Check(t.Context(), "demo") {
			r.Fatal(problem, err)
		}
	})
}

func TestTheFormatIsStable(t *testing.T) {
	a, bucket := written(t)
	segment := write(t, a, "demo", 1, 2)
	lines := `{"_tag":"UserMessageEvent","id":"demo:0001","timestamp":"2026-01-02T15:04:06Z","contextName":"demo","content":"<1>"}
{"_tag":"UserMessageEvent","id":"demo:0002","timestamp":"2026-01-02T15:04:07Z","contextName":"demo","parentEventId":"demo:0001","content":"<2>"}
`
	require.Equal(t, archive.Segment{Version: 1, First: 1, Last: 2, Blob: segment.Blob, Bytes: segment.Bytes, RawBytes: len(lines)}, segment)
	require.Equal(t, []string{"blobs/demo/" + string(segment.Blob), "contexts/demo/A/000000000001-000000000002.json", "contexts/demo/runs/000000000001.json"}, bucket.Names())

	entry, err := bucket.Store.Read(t.Context(), "contexts/demo/A/000000000001-000000000002.json")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`{"version":1,"first":1,"last":2,"blob":"%s","bytes":%d,"rawBytes":%d}`,
		segment.Blob, segment.Bytes, segment.RawBytes), string(entry))

	packed, err := a.Blobs("demo").Get(t.Context(), segment.Blob)
	require.NoError(t, err)
	require.Len(t, packed, segment.Bytes)
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	raw, err := decoder.DecodeAll(packed, nil)
	require.NoError(t, err)
	require.Equal(t, lines, string(raw))
}

func TestEncodingIsDeterministic(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		log := eventtest.Log("demo").Draw(r, "log")
		var names [2]string
		for i := range names {
			bucket := blobstest.New(t)
			a := archive.New(bucket.Store)
			require.NoError(r, register(t.Context(), a, "demo", archive.Run{ID: "A"}))
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() {
					if _, err := put(t.Context(), a, "demo", log); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			names[i] = strings.Join(bucket.Names(), " ")
			require.Len(r, bucket.Names(), 3)
		}
		require.Equal(r, names[0], names[1])
	})
}

func TestWriteIsIdempotent(t *testing.T) {
	a, bucket := written(t)
	once := write(t, a, "demo", 1, 50)
	writes := bucket.Writes()
	require.Equal(t, once, write(t, a, "demo", 1, 50))
	require.Equal(t, writes, bucket.Writes())

	// The writer was killed after the blob and before its entry.
	bucket.Set("contexts/demo/A/000000000001-000000000050.json", nil)
	got, err := counters(t, "demo", read(t.Context(), a, "demo", 0))
	require.NoError(t, err)
	require.Empty(t, got, "without an entry there is no segment")
	require.Equal(t, once, write(t, a, "demo", 1, 50))
	require.Equal(t, writes+1, bucket.Writes(), "the blob is not written again")
}

func TestASegmentOfAnotherCompressorIsNoConflict(t *testing.T) {
	a, bucket := written(t)
	segment := write(t, a, "demo", 1, 2)
	// Another version of the program compresses differently.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderCRC(false))
	require.NoError(t, err)
	var lines []byte
	for _, e := range messages("demo", 1, 2) {
		line, err := e.MarshalJSON()
		require.NoError(t, err)
		lines = append(append(lines, line...), '\n')
	}
	other := segment
	packed := encoder.EncodeAll(lines, nil)
	other.Blob, err = a.Blobs("demo").Put(t.Context(), packed)
	require.NoError(t, err)
	require.NotEqual(t, segment.Blob, other.Blob)
	other.Bytes = len(packed)
	entry, err := json.Marshal(other)
	require.NoError(t, err)
	bucket.Set("contexts/demo/A/000000000001-000000000002.json", entry)

	require.Equal(t, segment, write(t, a, "demo", 1, 2))
}

func TestWriteRejectsInvalidEvents(t *testing.T) {
	a, bucket := written(t, [2]int{1, 3})
	before := bucket.Names()
	noBody := messages("demo", 4, 5)
	noBody[1].Body = nil
	for name, tc := range map[string]struct {
		contextName string
		events      []event.Event
		want        string
	}{
		"no events":            {"demo", nil, "archive context demo: there are no events to write"},
		"a gap":                {"demo", append(messages("demo", 4, 5), messages("demo", 7, 7)...), `found event "demo:0007" of context "demo" (want "demo:0006")`},
		"a repeated event":     {"demo", append(messages("demo", 4, 5), messages("demo", 5, 5)...), `(want "demo:0006")`},
		"another context":      {"demo", messages("other", 4, 5), `found event "other:0004" of context "other" (want "demo:0004")`},
		"another, later":       {"demo", append(messages("demo", 4, 5), messages("other", 6, 6)...), `(want "demo:0006")`},
		"an input":             {"demo", []event.Event{event.New(event.UserMessage{})}, `the event id "" has no counter`},
		"no body":              {"demo", noBody, "missing: the event has no body"},
		"an invalid name":      {"../demo", messages("../demo", 4, 5), "a tenant has 1-64 of"},
		"another context's id": {"demo", []event.Event{{ID: "demo:0004", ContextName: "other", Body: event.UserMessage{}}}, `of context "other" (want "demo:0004")`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := put(t.Context(), a, tc.contextName, tc.events)
			require.ErrorContains(t, err, tc.want)
			require.Equal(t, before, bucket.Names(), "nothing is written")
		})
	}
}

func TestWriteReportsAConflict(t *testing.T) {
	a, _ := written(t, [2]int{1, 3})
	other := messages("demo", 1, 3)
	other[1].Body = event.UserMessage{Content: "something else"}
	_, err := put(t.Context(), a, "demo", other)
	require.ErrorIs(t, err, archive.ErrConflict)
	require.EqualError(t, err, "archive events 1 to 3 of context demo: the archive already has different events for these ids")
	i := 0
	for e, err := range read(t.Context(), a, "demo", 0) {
		require.NoError(t, err)
		require.Equal(t, messages("demo", 1, 3)[i], e)
		i++
	}
	require.Equal(t, 3, i)
}

func TestADamagedSegmentIsNoConflict(t *testing.T) {
	a, bucket := written(t, [2]int{1, 3})
	bucket.Set("contexts/demo/A/000000000001-000000000003.json", []byte{})
	_, err := put(t.Context(), a, "demo", messages("demo", 1, 3))
	require.ErrorIs(t, err, blobs.ErrCorrupt)
	require.ErrorContains(t, err, "its entry is damaged")
}

func TestOverlappingSegmentsAreReadOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		spans [][2]int
		// reads maps a counter to the events read after it.
		reads map[int]string
	}{
		"none":           {nil, map[int]string{0: "", 7: ""}},
		"one":            {[][2]int{{1, 50}}, map[int]string{0: "1-50", 1: "2-50", 49: "50-50", 50: "", 99: ""}},
		"a row":          {[][2]int{{1, 50}, {51, 80}, {81, 81}}, map[int]string{0: "1-81", 50: "51-81", 79: "80-81"}},
		"a longer one":   {[][2]int{{1, 50}, {1, 80}, {81, 90}}, map[int]string{0: "1-90", 60: "61-90"}},
		"a longer row":   {[][2]int{{1, 50}, {51, 60}, {1, 80}, {61, 90}}, map[int]string{0: "1-90", 80: "81-90"}},
		"one within":     {[][2]int{{1, 50}, {10, 20}}, map[int]string{0: "1-50", 15: "16-50"}},
		"in the middle":  {[][2]int{{1, 50}, {30, 70}, {71, 80}}, map[int]string{0: "1-80", 40: "41-80"}},
		"a gap":          {[][2]int{{1, 50}, {61, 80}}, map[int]string{0: "1-50", 50: "", 59: "", 60: "61-80"}},
		"a late start":   {[][2]int{{501, 600}}, map[int]string{0: "", 499: "", 500: "501-600"}},
		"a hundred more": {[][2]int{{1, 9_999}, {10_000, 10_099}}, map[int]string{9_990: "9991-10099"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := written(t, tc.spans...)
			for after, want := range tc.reads {
				got, err := counters(t, "demo", read(t.Context(), a, "demo", after))
				require.NoError(t, err)
				require.Equal(t, want, got, "after %d", after)
			}
		})
	}
}

// The reference model is the set of all events of all segments.
func TestSegmentsCoverAllTheirEvents(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := archive.New(blobstest.New(t).Store)
		archived := map[int]bool{}
		for range rapid.IntRange(0, 8).Draw(r, "segments") {
			first := rapid.IntRange(1, 30).Draw(r, "first")
			last := rapid.IntRange(first, 30).Draw(r, "last")
			write(t, a, "demo", first, last)
			for n := first; n <= last; n++ {
				archived[n] = true
			}
		}
		after := rapid.IntRange(0, 30).Draw(r, "after")
		end := after
		for archived[end+1] {
			end++
		}
		want := ""
		if end > after {
			want = formatRange(after+1, end)
		}
		got, err := counters(t, "demo", read(t.Context(), a, "demo", after))
		require.NoError(r, err)
		require.Equal(r, want, got)
	})
}

func TestContextsAreSeparateWhateverTheirNames(t *testing.T) {
	store, err := blobs.Open(t.Context(), "file://"+filepath.ToSlash(t.TempDir())+"/blobs", "default")
	require.NoError(t, err)
	defer store.Close()
	a := archive.New(store)
	contexts := []string{"demo", "Demo", "DEMO", "demo2", "dem", "demo.", "demo..", "demo...", "demo_", "1", "a..b", strings.Repeat("x", event.MaxContextName)}
	for i, name := range contexts {
		write(t, a, name, 1, i+1)
		require.NoError(t, fork(t.Context(), a, "fork-of."+name[:1]+fmt.Sprint(i), name, 1))
	}
	for i, name := range contexts {
		got, err := counters(t, name, read(t.Context(), a, name, 0))
		require.NoError(t, err)
		require.Equal(t, formatRange(1, i+1), got, name)
	}
}

func TestReadersMayStopAnywhere(t *testing.T) {
	a, _ := written(t, [2]int{1, 2}, [2]int{3, 4})
	require.NoError(t, fork(t.Context(), a, "fork", "demo", 3))
	require.NoError(t, register(t.Context(), a, "fork", archive.Run{ID: "A", After: 3, Behind: archive.ForkID}))
	write(t, a, "fork", 4, 5)
	for n := 1; n <= 5; n++ {
		seen := 0
		for range read(t.Context(), a, "fork", 0) {
			if seen++; seen == n {
				break
			}
		}
		require.Equal(t, n, seen)
	}
}

func TestAnEmptyArchiveIsValid(t *testing.T) {
	a, _ := written(t)
	require.Zero(t, archivedThrough(t, a, "demo"))
	for problem, err := range a.Check(t.Context(), "demo") {
		t.Fatal(problem, err)
	}
}

func TestAnUnavailableStoreIsAnError(t *testing.T) {
	a, bucket := written(t, [2]int{1, 50})
	require.NoError(t, fork(t.Context(), a, "fork", "demo", 7))
	bucket.Fail(errors.New("no route"))
	for name, use := range map[string]func() error{
		"write":  func() error { _, err := put(t.Context(), a, "demo", messages("demo", 51, 60)); return err },
		"again":  func() error { _, err := put(t.Context(), a, "demo", messages("demo", 1, 50)); return err },
		"link":   func() error { return fork(t.Context(), a, "fork2", "demo", 7) },
		"events": func() error { _, err := counters(t, "demo", read(t.Context(), a, "demo", 0)); return err },
		"fork":   func() error { _, err := counters(t, "fork", read(t.Context(), a, "fork", 0)); return err },
		"check": func() (err error) {
			for _, err = range a.Check(t.Context(), "demo") {
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := use()
			require.ErrorIs(t, err, blobs.ErrUnavailable)
			require.ErrorContains(t, err, "no route")
		})
	}
}

func TestReadersRejectInvalidNames(t *testing.T) {
	a, _ := written(t)
	for _, err := range read(t.Context(), a, "../demo", 0) {
		require.ErrorContains(t, err, "a tenant has 1-64 of")
	}
}
