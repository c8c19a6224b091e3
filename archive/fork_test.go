package archive_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestAForkHasTheEventsOfItsOriginUnderItsOwnName(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := archive.New(blobstest.New(t).Store)
		log := eventtest.Log("demo").Draw(r, "log")
		cut := rapid.IntRange(1, len(log)).Draw(r, "cut")
		for _, part := range [][]event.Event{log[:cut], log[cut:]} {
			if len(part) > 0 {
				_, err := a.Write(t.Context(), "demo", part)
				require.NoError(r, err)
			}
		}
		at := rapid.IntRange(1, len(log)).Draw(r, "at")
		require.NoError(r, a.Link(t.Context(), "copy", archive.Origin{ContextName: "demo", At: at}))
		own := rapid.IntRange(0, 3).Draw(r, "own")
		if own > 0 {
			write(t, a, "copy", at+1, at+own)
		}

		after := rapid.IntRange(0, at).Draw(r, "after")
		n := after
		for e, err := range a.Events(t.Context(), "copy", after) {
			require.NoError(r, err)
			if n++; n > at {
				require.Equal(r, said("copy", n, n)[0], e)
				continue
			}
			require.Equal(r, log[n-1].MovedTo("copy"), e)
			text, err := e.MarshalJSON()
			require.NoError(r, err)
			require.NotContains(r, string(text), `"demo`)
		}
		require.Equal(r, at+own, n)
		last, err := a.Last(t.Context(), "copy")
		require.NoError(r, err)
		require.Equal(r, at+own, last)
		for problem, err := range a.Check(t.Context(), "copy") {
			r.Fatal(problem, err)
		}
	})
}

func TestAForkCostsTheSameHoweverLongItsOriginIs(t *testing.T) {
	var reads, writes [2]int
	for i, length := range []int{10, 10_000} {
		a, bucket := written(t, [2]int{1, length})
		reads[i], writes[i] = bucket.Reads(), bucket.Writes()
		require.NoError(t, a.Link(t.Context(), "copy", archive.Origin{ContextName: "demo", At: length}))
		reads[i], writes[i] = bucket.Reads()-reads[i], bucket.Writes()-writes[i]
		entry, err := bucket.Store.Read(t.Context(), "contexts/copy/origin.json")
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(`{"version":1,"contextName":"demo","at":%d}`, length), string(entry))
	}
	require.Equal(t, 1, writes[0])
	require.Equal(t, writes[0], writes[1])
	require.Equal(t, reads[0], reads[1])
}

func TestForksOfForksAreRead(t *testing.T) {
	a, _ := written(t, [2]int{1, 10}, [2]int{11, 20})
	for _, link := range []struct {
		name, origin string
		at, last     int
	}{{"b", "demo", 15, 18}, {"c", "b", 17, 19}, {"d", "c", 12, 14}, {"e", "d", 14, 14}} {
		require.NoError(t, a.Link(t.Context(), link.name, archive.Origin{ContextName: link.origin, At: link.at}))
		if link.last > link.at {
			write(t, a, link.name, link.at+1, link.last)
		}
		got, err := counters(t, link.name, a.Events(t.Context(), link.name, 0))
		require.NoError(t, err)
		require.Equal(t, readable(1, link.last), got)
		for problem, err := range a.Check(t.Context(), link.name) {
			t.Fatal(problem, err)
		}
	}
	// What an origin gets later is not the fork's.
	write(t, a, "d", 15, 30)
	got, err := counters(t, "e", a.Events(t.Context(), "e", 3))
	require.NoError(t, err)
	require.Equal(t, "4-14", got)
}

func TestLinkingAgainDoesNothing(t *testing.T) {
	a, bucket := written(t, [2]int{1, 10})
	origin := archive.Origin{ContextName: "demo", At: 5}
	require.NoError(t, a.Link(t.Context(), "copy", origin))
	write(t, a, "copy", 6, 7)
	before := bucket.Writes()
	require.NoError(t, a.Link(t.Context(), "copy", origin))
	require.Equal(t, before, bucket.Writes())
}

func TestAForkThatCannotBeIsRefused(t *testing.T) {
	a, bucket := written(t, [2]int{1, 10}, [2]int{21, 30})
	require.NoError(t, a.Link(t.Context(), "fork", archive.Origin{ContextName: "demo", At: 5}))
	write(t, a, "taken", 1, 3)
	before := bucket.Names()
	for _, tc := range []struct {
		name, contextName string
		origin            archive.Origin
		want              string
	}{
		{"of itself", "demo", archive.Origin{ContextName: "demo", At: 5}, "want another name"},
		{"at nothing", "new", archive.Origin{ContextName: "demo"}, "an event from 1 on"},
		{"of nothing", "new", archive.Origin{ContextName: "nobody", At: 1}, "the archive has its events up to 0 only"},
		{"beyond a gap", "new", archive.Origin{ContextName: "demo", At: 25}, "fork context demo at event 25 as context new: the archive has its events up to 10 only"},
		{"beyond the end of a fork", "new", archive.Origin{ContextName: "fork", At: 6}, "up to 5 only"},
		{"under a name that is taken", "taken", archive.Origin{ContextName: "demo", At: 5}, "the context has events of its own from 1 on"},
		{"of something else", "fork", archive.Origin{ContextName: "demo", At: 6}, "the archive has something else there"},
		{"under a name that is none", "../x", archive.Origin{ContextName: "demo", At: 5}, "a name has 1-128 of"},
		{"of a name that is none", "new", archive.Origin{ContextName: "../x", At: 5}, "a name has 1-128 of"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.ErrorContains(t, a.Link(t.Context(), tc.contextName, tc.origin), tc.want)
			require.Equal(t, before, bucket.Names())
		})
	}
}

func TestForksInACircleEndInAnError(t *testing.T) {
	a, bucket := written(t)
	bucket.Set("contexts/a/origin.json", []byte(`{"version":1,"contextName":"b","at":5}`))
	bucket.Set("contexts/b/origin.json", []byte(`{"version":1,"contextName":"a","at":5}`))
	_, err := counters(t, "a", a.Events(t.Context(), "a", 0))
	require.ErrorContains(t, err, "more than 100 forks of forks, or a circle of them")
	require.ErrorContains(t, a.Link(t.Context(), "c", archive.Origin{ContextName: "a", At: 5}), "a circle of them")
	said := problems(t, a, "a")
	require.Len(t, said, 1)
	require.Contains(t, said[0], "a circle of them")
}

func TestAnOriginThatCannotBeReadIsAnError(t *testing.T) {
	for name, tc := range map[string]struct{ entry, want string }{
		"no JSON":          {"no", "its entry is damaged: it says nothing about the origin"},
		"nothing":          {"{}", "its entry is damaged: it says nothing about the origin"},
		"of a later time":  {`{"version":2,"contextName":"demo","at":5}`, "it has the format 2 and this program reads 1: use a newer one"},
		"of a false name":  {`{"version":1,"contextName":"../x","at":5}`, "a name has 1-128 of"},
		"of a false event": {`{"version":1,"contextName":"demo","at":-5}`, "its entry is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			a, bucket := written(t, [2]int{1, 10})
			bucket.Set("contexts/copy/origin.json", []byte(tc.entry))
			_, err := counters(t, "copy", a.Events(t.Context(), "copy", 0))
			require.ErrorContains(t, err, tc.want)
			if strings.Contains(tc.want, "damaged") {
				require.ErrorIs(t, err, blobs.ErrCorrupt)
				_, err = a.Last(t.Context(), "copy")
				require.ErrorIs(t, err, blobs.ErrCorrupt)
			}
			require.Len(t, problems(t, a, "copy"), 1)
		})
	}
}

func TestAForkEndsWhereItsOriginHasAGap(t *testing.T) {
	a, bucket := written(t, [2]int{1, 10}, [2]int{11, 20})
	require.NoError(t, a.Link(t.Context(), "copy", archive.Origin{ContextName: "demo", At: 15}))
	write(t, a, "copy", 16, 20)
	bucket.Set("contexts/demo/000000000011-000000000020.json", nil)
	got, err := counters(t, "copy", a.Events(t.Context(), "copy", 0))
	require.NoError(t, err)
	require.Equal(t, "1-10", got, "and not what comes behind the gap")
	got, err = counters(t, "copy", a.Events(t.Context(), "copy", 15))
	require.NoError(t, err)
	require.Equal(t, "16-20", got)
	require.Equal(t, []string{"contexts/copy/origin.json: the archive has the events of its origin demo up to 10, and it needs 15"},
		problems(t, a, "copy"))
}
