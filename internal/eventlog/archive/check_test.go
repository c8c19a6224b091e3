package archive_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

// problems returns the problems that a check finds.
func problems(t testing.TB, a *archive.Archive, contextName string) []string {
	t.Helper()
	var texts []string
	for problem, err := range a.Check(t.Context(), contextName) {
		require.NoError(t, err)
		texts = append(texts, problem.String())
	}
	return texts
}

const (
	middle = "contexts/demo/A/000000000011-000000000020.json"
	entry  = `{"version":1,"first":11,"last":20,"blob":"sha256/`
)

// replace changes the lines of the middle segment and adapts its entry.
func replace(t testing.TB, bucket *blobstest.Bucket, change func(lines string) string) {
	t.Helper()
	data, err := bucket.Store.Read(t.Context(), middle)
	require.NoError(t, err)
	var segment archive.Segment
	require.NoError(t, json.Unmarshal(data, &segment))
	packed, err := archive.New(bucket.Store).Blobs("demo").Get(t.Context(), segment.Blob)
	require.NoError(t, err)
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	lines, err := decoder.DecodeAll(packed, nil)
	require.NoError(t, err)
	changed := []byte(change(string(lines)))
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed = encoder.EncodeAll(changed, nil)
	segment.Blob, err = archive.New(bucket.Store).Blobs("demo").Put(t.Context(), packed)
	require.NoError(t, err)
	segment.Bytes, segment.RawBytes = len(packed), len(changed)
	data, err = json.Marshal(segment)
	require.NoError(t, err)
	bucket.Set(middle, data)
}

func substitute(old, new string) func(string) string {
	return func(lines string) string { return strings.Replace(lines, old, new, 1) }
}

// Each case damages the middle one of three segments of ten events.
func TestDamageIsReportedAndNeverRead(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(t testing.TB, bucket *blobstest.Bucket, segment archive.Segment)
		kind   error
		// want is the reported problem.
		want string
		// read are the events read before the error.
		read string
	}{
		"an entry that is invalid JSON": {
			func(_ testing.TB, b *blobstest.Bucket, _ archive.Segment) { b.Set(middle, []byte(`{"version"`)) },
			blobs.ErrCorrupt, "its entry is damaged: unexpected end of JSON input", "1-10",
		},
		"an entry of other events": {
			func(_ testing.TB, b *blobstest.Bucket, _ archive.Segment) {
				b.Set(middle, []byte(strings.Replace(entry, "11", "1", 1)+strings.Repeat("0", 64)+`"}`))
			},
			blobs.ErrCorrupt, "its entry is damaged: it describes events 1 to 20", "1-10",
		},
		"an entry with an invalid reference": {
			func(_ testing.TB, b *blobstest.Bucket, _ archive.Segment) { b.Set(middle, []byte(entry+`../x"}`)) },
			blobs.ErrCorrupt, "want sha256/ and 64 of 0-9 a-f", "1-10",
		},
		"a newer format": {
			func(_ testing.TB, b *blobstest.Bucket, _ archive.Segment) { b.Set(middle, []byte(`{"version":2}`)) },
			nil, "format version 2 is unsupported (this program reads version 1; use a newer one)", "1-10",
		},
		"a missing blob": {
			func(_ testing.TB, b *blobstest.Bucket, s archive.Segment) { b.Set("blobs/demo/"+string(s.Blob), nil) },
			blobs.ErrNotFound, "is not in the store", "1-10",
		},
		"a blob of other bytes": {
			func(_ testing.TB, b *blobstest.Bucket, s archive.Segment) {
				b.Set("blobs/demo/"+string(s.Blob), []byte("hullo"))
			},
			blobs.ErrCorrupt, "is damaged: its content does not match its hash", "1-10",
		},
		"a blob that is not compressed": {
			func(t testing.TB, b *blobstest.Bucket, s archive.Segment) {
				var err error
				s.Blob, err = archive.New(b.Store).Blobs("demo").Put(t.Context(), []byte("hello"))
				require.NoError(t, err)
				data, err := json.Marshal(s)
				require.NoError(t, err)
				b.Set(middle, data)
			},
			blobs.ErrCorrupt, "is damaged: ", "1-10",
		},
		"a missing line": {
			func(t testing.TB, b *blobstest.Bucket, _ archive.Segment) {
				replace(t, b, func(lines string) string { return lines[strings.Index(lines, "\n")+1:] })
			},
			blobs.ErrCorrupt, "it has 9 events in", "1-10",
		},
		"an extra line": {
			func(t testing.TB, b *blobstest.Bucket, _ archive.Segment) {
				replace(t, b, func(lines string) string { return lines + "{}\n" })
			},
			blobs.ErrCorrupt, "it has 11 events in", "1-10",
		},
		"an invalid event": {
			func(t testing.TB, b *blobstest.Bucket, _ archive.Segment) {
				replace(t, b, substitute(`"content":"<14>"`, `"content":14`))
			},
			blobs.ErrCorrupt, "line 4 is damaged: UserMessageEvent.content: want a string", "1-13",
		},
		"a repeated id": {
			func(t testing.TB, b *blobstest.Bucket, _ archive.Segment) {
				replace(t, b, substitute(`"id":"demo:0014"`, `"id":"demo:0013"`))
			},
			blobs.ErrCorrupt, `line 4 is damaged: found event "demo:0013" of context "demo" (want "demo:0014")`, "1-13",
		},
		"an event of another context": {
			func(t testing.TB, b *blobstest.Bucket, _ archive.Segment) {
				replace(t, b, substitute(`"contextName":"demo"`, `"contextName":"Demo"`))
			},
			blobs.ErrCorrupt, `line 1 is damaged: found event "demo:0011" of context "Demo" (want "demo:0011")`, "1-10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, bucket := written(t, [2]int{1, 10}, [2]int{21, 30})
			tc.damage(t, bucket, write(t, a, "demo", 11, 20))

			got, err := counters(t, "demo", read(t.Context(), a, "demo", 0))
			require.Equal(t, tc.read, got)
			var segment *archive.SegmentError
			require.ErrorAs(t, err, &segment)
			require.Equal(t, archive.SegmentError{ContextName: "demo", First: 11, Last: 20, Err: segment.Err}, *segment)
			require.ErrorContains(t, err, "read events 11 to 20 of context demo in the archive: ")
			require.ErrorContains(t, err, tc.want)
			if tc.kind != nil {
				require.ErrorIs(t, err, tc.kind)
			}
			require.NotErrorIs(t, err, blobs.ErrUnavailable)

			found := problems(t, a, "demo")
			require.Len(t, found, 1)
			require.Contains(t, found[0], middle+": ")
			require.Contains(t, found[0], tc.want)

			got, err = counters(t, "demo", read(t.Context(), a, "demo", 20))
			require.NoError(t, err)
			require.Equal(t, "21-30", got, "later segments are readable")
		})
	}
}

func TestCheckReportsWhatReadersIgnore(t *testing.T) {
	t.Run("a gap", func(t *testing.T) {
		a, _ := written(t, [2]int{5, 10}, [2]int{21, 30}, [2]int{22, 25})
		require.Equal(t, []string{
			"contexts/demo/A/: events 1 to 4 are missing",
			"contexts/demo/A/: events 11 to 20 are missing",
		}, problems(t, a, "demo"))
	})
	t.Run("another parent", func(t *testing.T) {
		a, bucket := written(t, [2]int{1, 10}, [2]int{11, 20})
		replace(t, bucket, substitute(`"parentEventId":"demo:0013"`, `"parentEventId":"demo:0012"`))
		require.Equal(t, []string{middle + `: event demo:0014 has the parent "demo:0012" (want "demo:0013")`}, problems(t, a, "demo"))
		got, err := counters(t, "demo", read(t.Context(), a, "demo", 0))
		require.NoError(t, err)
		require.Equal(t, "1-20", got)
	})
	t.Run("another parent of the first event", func(t *testing.T) {
		a, bucket := written(t, [2]int{1, 10}, [2]int{11, 20})
		replace(t, bucket, substitute(`"parentEventId":"demo:0010",`, ""))
		require.Equal(t, []string{middle + `: event demo:0011 has the parent "" (want "demo:0010")`}, problems(t, a, "demo"))
	})
	t.Run("unknown entries", func(t *testing.T) {
		a, bucket := written(t, [2]int{1, 10})
		for _, name := range []string{"1-10.json", "000000000010-000000000001.json", "000000000000-000000000001.json", "notes.txt", "000000000001-000000000010.json.bak"} {
			bucket.Set("contexts/demo/"+name, []byte("{}"))
		}
		require.Len(t, problems(t, a, "demo"), 5)
		require.Equal(t, "contexts/demo/000000000000-000000000001.json: unknown entry", problems(t, a, "demo")[0])
		got, err := counters(t, "demo", read(t.Context(), a, "demo", 0))
		require.NoError(t, err)
		require.Equal(t, "1-10", got)
		for range a.Check(t.Context(), "demo") {
			break // a reader may stop anywhere
		}
	})
}

func TestCheckEndsWhenTheStoreBecomesUnavailable(t *testing.T) {
	a, bucket := written(t, [2]int{5, 10})
	var found []string
	var last error
	for problem, err := range a.Check(t.Context(), "demo") {
		if last = err; err == nil {
			found = append(found, problem.Text)
			bucket.Fail(errors.New("no route"))
		}
	}
	require.Equal(t, []string{"events 1 to 4 are missing"}, found)
	require.ErrorIs(t, last, blobs.ErrUnavailable)
}
