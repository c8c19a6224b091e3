package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/archive"
	"github.com/seed-9ed7edd4/chronicle/blobs"
	"github.com/seed-9ed7edd4/chronicle/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// spoken are events first to last, which say their counters.
func spoken(first, last int) (bodies []event.Body) {
	for n := first; n <= last; n++ {
		bodies = append(bodies, event.UserMessage{Content: fmt.Sprint("m", n)})
	}
	return bodies
}

// keep writes a segment of such events of a context into an archive.
func keep(t testing.TB, a *archive.Archive, contextName string, first, last int) archive.Segment {
	t.Helper()
	var events []event.Event
	for i, body := range spoken(first, last) {
		events = append(events, event.Event{ID: event.FormatID(contextName, first+i), ContextName: contextName, Timestamp: epoch, Body: body})
	}
	segment, err := a.Write(t.Context(), contextName, events)
	require.NoError(t, err)
	return segment
}

// kept is an archive with segments of the context demo.
func kept(t testing.TB, spans ...[2]int) (*archive.Archive, *blobstest.Bucket) {
	t.Helper()
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	for _, s := range spans {
		keep(t, a, "demo", s[0], s[1])
	}
	return a, bucket
}

// spokenRun is a run with events first to last.
func spokenRun(t testing.TB, id, continued string, first, last int) *run {
	return newRun(id, continued, record(t, first, spoken(first, last)...))
}

// range of events, as told tells them.
func lines(first, last int) string {
	var lines []string
	for n := first; n <= last; n++ {
		lines = append(lines, fmt.Sprintf("%d:m%d", n, n))
	}
	return strings.Join(lines, " ")
}

// toldUntil is what is told before the error at the end.
func toldUntil(t testing.TB, log *eventlog.Log, from string) (string, error) {
	t.Helper()
	var said []string
	for e, err := range log.Events(t.Context(), "demo", from) {
		if err != nil {
			return strings.Join(said, " "), err
		}
		said = append(said, line(e))
	}
	return strings.Join(said, " "), nil
}

func TestTheArchiveIsReadFirstAndThenNoFurtherBackThanNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		segments [][2]int
		from     string
		want     string
		read     string // the runs whose histories were read
	}{
		"within a run":         {[][2]int{{1, 4}}, "", lines(1, 9), "BC"},
		"to the end of a run":  {[][2]int{{1, 3}, {4, 6}}, "", lines(1, 9), "C"},
		"to the end":           {[][2]int{{1, 9}}, "", lines(1, 9), "C"},
		"not at all":           {nil, "", lines(1, 9), "ABC"},
		"not from there on":    {[][2]int{{4, 6}}, "", lines(1, 9), "ABC"},
		"only from there on":   {[][2]int{{4, 6}}, "demo:0003", lines(4, 9), "C"},
		"before there":         {[][2]int{{1, 3}}, "demo:0005", lines(6, 9), "BC"},
		"from the end on":      {[][2]int{{1, 3}}, "demo:0009", "", "C"},
		"from behind the end":  {[][2]int{{1, 3}}, "demo:0099", "", "C"},
		"with a hole behind 3": {[][2]int{{1, 3}, {5, 6}}, "", lines(1, 9), "BC"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, spokenRun(t, "A", "", 1, 3), spokenRun(t, "B", "A", 4, 6), spokenRun(t, "C", "B", 7, 9))
			a, _ := kept(t, tc.segments...)
			require.Equal(t, tc.want, told(t, eventlog.New(s, a).Events(t.Context(), "demo", tc.from)))
			read := ""
			for _, run := range []string{"A", "B", "C"} {
				if s.read[run] > 0 {
					read += run
				}
			}
			require.Equal(t, tc.read, read)
		})
	}
}

// The slow and obvious twin is a set of what the archive and the runs have.
func TestNothingIsSkippedInSilence(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const events = 20
		s := newServer(t)
		inRun := map[int]bool{}
		deleted := rapid.IntRange(0, 4).Draw(r, "deleted runs")
		for first := 1; first <= events; {
			last := rapid.IntRange(first, events).Draw(r, "last of a run")
			id := fmt.Sprint("R", len(s.runs))
			continued := ""
			if len(s.runs) > 0 {
				continued = s.runs[len(s.runs)-1].id
			}
			next := spokenRun(t, id, continued, first, last)
			next.isDeleted = len(s.runs) < deleted && last < events
			for n := first; n <= last; n++ {
				inRun[n] = !next.isDeleted
			}
			s.runs = append(s.runs, next)
			first = last + 1
		}
		a, bucket := kept(t)
		inArchive := map[int]bool{}
		for first := 1; first <= events; {
			last := rapid.IntRange(first, events).Draw(r, "last of a segment")
			segment := keep(t, a, "demo", first, last)
			isWhole := rapid.IntRange(0, 3).Draw(r, "whole") > 0
			if !isWhole {
				bucket.Set(string(segment.Blob), nil)
			}
			for n := first; n <= last; n++ {
				inArchive[n] = isWhole
			}
			first = last + 1
		}

		from := rapid.IntRange(0, events).Draw(r, "from")
		got, err := toldUntil(t, eventlog.New(s, a), event.FormatID("demo", from))
		end := from
		for inArchive[end+1] {
			end++
		}
		for inRun[end+1] {
			end++
		}
		require.Equal(r, lines(from+1, end), got)
		if end == events {
			require.NoError(r, err)
			return
		}
		var gap *eventlog.GapError
		require.ErrorAs(r, err, &gap)
		require.Equal(r, end+1, gap.First)
		for n := gap.First; n <= gap.Last; n++ {
			require.False(r, inRun[n])
		}
		require.True(r, inRun[gap.Last+1])
		require.ErrorIs(r, err, blobs.ErrNotFound)
	})
}

func TestWhatNobodyHasAnyMoreIsAnError(t *testing.T) {
	old := spokenRun(t, "A", "", 1, 3)
	old.isDeleted = true
	s := newServer(t, old, spokenRun(t, "B", "A", 4, 6))
	a, _ := kept(t, [2]int{1, 1})
	got, err := toldUntil(t, eventlog.New(s, a), "")
	require.Equal(t, lines(1, 1), got)
	require.EqualError(t, err, "events 2 to 3 of context demo are in no history of the server and not in the archive; the log goes on behind demo:0003")
	require.Equal(t, lines(4, 6), told(t, eventlog.New(s, a).Events(t.Context(), "demo", "demo:0003")))
}

func TestAnArchiveThatCannotBeReadIsMadeGoodForByHistories(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(bucket *blobstest.Bucket, segment archive.Segment)
		kind  error
		// read is what is read when there is no history of it, either.
		read string
		want string
	}{
		"a segment is missing": {
			func(b *blobstest.Bucket, s archive.Segment) { b.Set(string(s.Blob), nil) }, blobs.ErrNotFound, lines(1, 2),
			"events 3 to 6 of context demo are in no history of the server, and the archive cannot be read: read events 3 to 4 of context demo in the archive: ",
		},
		"a segment is damaged": {
			func(b *blobstest.Bucket, s archive.Segment) { b.Set(string(s.Blob), []byte("no")) }, blobs.ErrCorrupt, lines(1, 2),
			"events 3 to 6 of context demo are in no history of the server, and the archive cannot be read: read events 3 to 4 of context demo in the archive: ",
		},
		"the store is away": {
			func(b *blobstest.Bucket, _ archive.Segment) { b.Fail(errors.New("no route")) }, blobs.ErrAway, "",
			"events 1 to 6 of context demo are in no history of the server, and the archive cannot be read: list the archive of context demo: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := spokenRun(t, "A", "", 1, 6)
			s := newServer(t, old, spokenRun(t, "B", "A", 7, 9))
			a, bucket := kept(t, [2]int{1, 2}, [2]int{5, 6})
			tc.spoil(bucket, keep(t, a, "demo", 3, 4))
			log := eventlog.New(s, a)
			require.Equal(t, lines(1, 9), told(t, log.Events(t.Context(), "demo", "")))
			require.Equal(t, lines(1, 6), told(t, log.UpTo(t.Context(), "demo", "A")))
			require.Equal(t, lines(1, 9), followed(t, log, "", 9))

			old.isDeleted = true
			read, err := toldUntil(t, log, "")
			require.Equal(t, tc.read, read)
			require.ErrorIs(t, err, tc.kind)
			require.ErrorContains(t, err, tc.want)
			require.Equal(t, lines(7, 9), told(t, log.Events(t.Context(), "demo", "demo:0006")))

			s.runs = nil
			read, err = toldUntil(t, log, "")
			require.Equal(t, tc.read, read)
			require.ErrorIs(t, err, tc.kind)
			require.ErrorContains(t, err, " on of context demo are in no history of the server")
			require.NotErrorIs(t, err, eventlog.ErrNoContext)
		})
	}
}

func TestAContextThatTheServerHasForgottenIsStillRead(t *testing.T) {
	a, _ := kept(t, [2]int{1, 3}, [2]int{4, 6})
	log := eventlog.New(newServer(t), a)
	require.Equal(t, lines(1, 6), told(t, log.Events(t.Context(), "demo", "")))
	require.Equal(t, lines(5, 6), told(t, log.Events(t.Context(), "demo", "demo:0004")))
	require.Empty(t, told(t, log.Events(t.Context(), "demo", "demo:0006")))
	require.Equal(t, lines(1, 6), told(t, log.UpTo(t.Context(), "demo", "A")))
	require.Equal(t, lines(1, 6), told(t, log.UpTo(t.Context(), "demo", "")))
	require.Equal(t, lines(1, 6), followed(t, log, "", 6))
}

func TestAContextThatNobodyKnowsIsAnErrorOfItsOwn(t *testing.T) {
	a, _ := kept(t)
	keep(t, a, "demo2", 1, 3)
	log := eventlog.New(newServer(t), a)
	_, err := toldUntil(t, log, "")
	require.ErrorIs(t, err, eventlog.ErrNoContext)
	require.EqualError(t, err, "look for context demo: no such context: no such workflow")
	require.Empty(t, told(t, log.UpTo(t.Context(), "demo", "")))
}

func TestAServerThatIsAwayIsAnErrorBehindTheArchive(t *testing.T) {
	a, _ := kept(t, [2]int{1, 3})
	s := newServer(t, spokenRun(t, "A", "", 1, 6))
	away := errors.New("no route")
	s.fail = func(string) error { return away }
	read, err := toldUntil(t, eventlog.New(s, a), "")
	require.Equal(t, lines(1, 3), read)
	require.ErrorIs(t, err, away)
	for _, err := range eventlog.New(s, a).UpTo(t.Context(), "demo", "A") {
		require.ErrorIs(t, err, away, "nobody can tell how far the run goes")
	}
}

func TestALogUpToARunEndsWithItThoughTheArchiveGoesOn(t *testing.T) {
	a, _ := kept(t, [2]int{1, 8})
	s := newServer(t,
		spokenRun(t, "A", "", 1, 3),
		newRun("B", "A"), // terminated before its first task
		spokenRun(t, "C", "B", 4, 6),
		spokenRun(t, "D", "C", 7, 9),
	)
	log := eventlog.New(s, a)
	for run, want := range map[string]string{"A": lines(1, 3), "B": lines(1, 3), "C": lines(1, 6), "D": lines(1, 9)} {
		require.Equal(t, want, told(t, log.UpTo(t.Context(), "demo", run)), "up to %s", run)
	}
	for n := 1; n <= 9; n++ {
		seen := 0
		for range log.UpTo(t.Context(), "demo", "D") {
			if seen++; seen == n {
				break // a reader may stop anywhere
			}
		}
		require.Equal(t, n, seen)
	}
}

func TestALogUpToARunIsWhatThereIsWhenEventsAreLost(t *testing.T) {
	a, _ := kept(t, [2]int{1, 2})
	log := eventlog.New(newServer(t, spokenRun(t, "C", "B", 5, 6)), a)
	require.Equal(t, lines(1, 2)+" "+lines(5, 6), told(t, log.UpTo(t.Context(), "demo", "C")))
	_, err := toldUntil(t, log, "")
	var gap *eventlog.GapError
	require.ErrorAs(t, err, &gap, "but whoever reads a log is told")
	require.Equal(t, [2]int{3, 4}, [2]int{gap.First, gap.Last})
}

func TestAForkBeginsWithTheEventsOfItsOrigin(t *testing.T) {
	a, _ := kept(t)
	keep(t, a, "source", 1, 5)
	require.NoError(t, a.Link(t.Context(), "demo", archive.Origin{ContextName: "source", At: 3}))
	s := newServer(t, spokenRun(t, "A", "", 4, 6))
	log := eventlog.New(s, a)
	require.Equal(t, lines(1, 6), told(t, log.Events(t.Context(), "demo", "")))
	require.Equal(t, lines(1, 6), told(t, log.UpTo(t.Context(), "demo", "A")))
	require.Equal(t, lines(3, 6), followed(t, log, "demo:0002", 4))
}

func TestFollowingReadsTheArchiveOnce(t *testing.T) {
	a, bucket := kept(t, [2]int{1, 2})
	reads := 0
	s := &polled{server: newServer(t, spokenRun(t, "A", "", 1, 3))}
	s.onPoll = func(n int) {
		switch n {
		case 1:
			reads = bucket.Reads()
		case 4:
			s.runs = append(s.runs, spokenRun(t, "B", "A", 4, 5))
		case 7:
			s.runs = append(s.runs, newRun("C", "", record(t, 6, append([]event.Body{session("B")}, spoken(7, 7)...)...)))
		}
	}
	require.Equal(t, lines(1, 5)+" 6:(SessionStarted) 7:m7", followed(t, eventlog.New(s, a), "", 7))
	require.Positive(t, reads)
	require.Equal(t, reads, bucket.Reads())
}

// polled is a server that says when it is asked for the newest run.
type polled struct {
	*server
	polls  int
	onPoll func(n int)
}

func (s *polled) DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.polls++
	s.onPoll(s.polls)
	return s.server.DescribeWorkflowExecution(ctx, workflowID, runID)
}

func TestFollowingFindsInTheArchiveWhatTheServerHasForgottenMeanwhile(t *testing.T) {
	a, _ := kept(t, [2]int{1, 2})
	s := newServer(t, spokenRun(t, "A", "", 1, 3))
	s.runs[0].onEnd = func() {
		keep(t, a, "demo", 3, 6)
		forgotten := spokenRun(t, "B", "A", 4, 6)
		forgotten.isDeleted = true
		s.runs = []*run{forgotten, spokenRun(t, "C", "B", 7, 9)}
	}
	require.Equal(t, lines(1, 9), followed(t, eventlog.New(s, a), "", 9))
}

func TestFollowingEndsWithAGap(t *testing.T) {
	a, bucket := kept(t, [2]int{1, 2})
	s := newServer(t, spokenRun(t, "A", "", 1, 3))
	s.runs[0].onEnd = func() {
		forgotten := spokenRun(t, "B", "A", 4, 6)
		forgotten.isDeleted = true
		s.runs = []*run{forgotten, spokenRun(t, "C", "B", 7, 9)}
	}
	var said []string
	var last error
	for e, err := range eventlog.New(s, a).Follow(t.Context(), "demo", "", nil) {
		if last = err; err == nil {
			said = append(said, line(e))
		}
	}
	require.Equal(t, lines(1, 3), strings.Join(said, " "))
	var gap *eventlog.GapError
	require.ErrorAs(t, last, &gap)
	require.Equal(t, eventlog.GapError{ContextName: "demo", First: 4, Last: 6}, *gap)

	// It is not mended by waiting, either, when the server knows nothing.
	bucket.Set(string(keep(t, a, "demo", 3, 4).Blob), nil)
	s.runs = nil
	for _, last = range eventlog.New(s, a).Follow(t.Context(), "demo", "", nil) {
	}
	require.ErrorIs(t, last, blobs.ErrNotFound)
}

func TestFollowingWaitsForAnArchiveThatIsAway(t *testing.T) {
	for name, runs := range map[string][]*run{
		"when the server has the rest":  {spokenRun(t, "C", "", 4, 6)},
		"when the server knows nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			a, bucket := kept(t, [2]int{1, 3})
			bucket.Fail(errors.New("no route"))
			s := &polled{server: newServer(t, runs...)}
			s.onPoll = func(n int) {
				if n == 3 {
					bucket.Fail(nil)
				}
			}
			last := 3 + 3*len(runs)
			require.Equal(t, lines(1, last), followed(t, eventlog.New(s, a), "", last))
		})
	}
}

// outside is a record as the SDK leaves it in a history when it is large.
func outside(t testing.TB, store *blobs.Store, first int, bodies ...event.Body) *historypb.HistoryEvent {
	t.Helper()
	storage := blobs.ExternalStorage(store)
	storage.PayloadSizeThreshold = 1
	handler, err := converter.NewPayloadHTTPHandler(converter.PayloadHTTPHandlerOptions{ExternalStorage: storage})
	require.NoError(t, err)
	h := record(t, first, bodies...)
	details := h.GetMarkerRecordedEventAttributes().GetDetails()
	body, err := protojson.Marshal(details[wire.MarkerData])
	require.NoError(t, err)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/encode", strings.NewReader(string(body))))
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	var stored commonpb.Payloads
	require.NoError(t, protojson.Unmarshal(answer.Body.Bytes(), &stored))
	require.True(t, blobs.IsReference(stored.GetPayloads()[0]))
	details[wire.MarkerData] = &stored
	return h
}

func TestRecordsThatAreKeptInTheStoreAreReadThere(t *testing.T) {
	a, bucket := kept(t)
	s := newServer(t, newRun("A", "", outside(t, bucket.Store, 1, spoken(1, 3)...), record(t, 4, spoken(4, 5)...)))
	require.Equal(t, lines(1, 5), told(t, eventlog.New(s, a).Events(t.Context(), "demo", "")))

	_, err := toldUntil(t, eventlog.New(s, nil), "")
	require.ErrorIs(t, err, eventlog.ErrNoArchive)
	require.ErrorContains(t, err, "run A: history event 5 is in a blob store")

	for _, name := range bucket.Names() {
		bucket.Set(name, nil)
	}
	_, err = toldUntil(t, eventlog.New(s, a), "")
	require.ErrorIs(t, err, blobs.ErrNotFound)
	require.ErrorContains(t, err, "run A: history event 5 holds no record: blob sha256/")
}

func TestWhatIsNotArchivedYetIsWrittenAsOneSegment(t *testing.T) {
	a, bucket := kept(t, [2]int{1, 2})
	log := eventlog.New(newServer(t, spokenRun(t, "A", "", 1, 3), spokenRun(t, "B", "A", 4, 6)), a)
	for _, through := range []int{2, 5, 4} {
		require.NoError(t, log.Archive(t.Context(), "demo", through))
	}
	segments, err := a.Segments(t.Context(), "demo")
	require.NoError(t, err)
	require.Len(t, segments, 2)
	require.Equal(t, []int{3, 5}, []int{segments[1].First, segments[1].Last})
	require.Equal(t, lines(1, 5), told(t, a.Events(t.Context(), "demo", 0)))

	before := bucket.Names()
	require.EqualError(t, log.Archive(t.Context(), "demo", 7), "archive context demo: its log ends before demo:0007")
	require.Equal(t, before, bucket.Names())
}
