package eventlog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

// grow adds events to a run, each with two other entries before it.
func (r *run) grow(t testing.TB, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		r.history = append(r.history, &historypb.HistoryEvent{}, &historypb.HistoryEvent{}, record(t, n, messages(n, n)...))
	}
}

// longRun returns a server with one run that has recorded the given number of events.
func longRun(t testing.TB, events int) *server {
	s := newServer(t, newRun("A", ""))
	s.runs[0].grow(t, 1, events)
	return s
}

// part reads events after a counter.
func part(t testing.TB, log *eventlog.Log, after, most int) (counters []int) {
	t.Helper()
	for e, err := range log.Events(t.Context(), "demo", event.FormatID("demo", after)) {
		require.NoError(t, err)
		if len(counters) == most {
			break
		}
		counters = append(counters, event.Counter(e.ID))
	}
	return counters
}

// span returns the numbers first to last.
func span(first, last int) (numbers []int) {
	for n := first; n <= last; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func TestPagesReadAHistoryOnceInTotal(t *testing.T) {
	const events, page = 2_000, 100
	s := longRun(t, events)
	log := eventlog.New(s, "", nil)
	for after := 0; after < events; after += page {
		require.Equal(t, span(after+1, after+page), part(t, log, after, page))
	}
	// Each read also finds the beginning of the run, and reads the rest of two pages.
	require.LessOrEqual(t, s.entries, len(s.runs[0].history)+events/page*3*64)
}

func TestOneEventIsReadWithoutThoseBeforeIt(t *testing.T) {
	s := longRun(t, 2_000)
	log := eventlog.New(s, "", nil)
	part(t, log, 0, 2_000)
	for _, after := range []int{1_999, 1_000, 10, 1_500} {
		s.entries = 0
		require.Equal(t, []int{after + 1}, part(t, log, after, 1))
		require.LessOrEqual(t, s.entries, 64+256+64)
		s.entries = 0
		require.Equal(t, []int{after + 1}, part(t, log, after, 1))
		require.LessOrEqual(t, s.entries, 64+2*64, "the second reading has a bookmark of the first")
	}
}

func TestARejectedTokenRestartsAtTheBeginning(t *testing.T) {
	for name, refuse := range map[string]func(s *server) error{
		"as invalid":  func(s *server) error { s.tokens = map[string]token{}; return nil },
		"as internal": func(*server) error { return serviceerror.NewInternal("unknown version of the token") },
	} {
		t.Run(name, func(t *testing.T) {
			s := longRun(t, 500)
			log := eventlog.New(s, "", nil)
			part(t, log, 0, 500)
			err := refuse(s)
			s.fail = func(string) error { failed := err; err = nil; return failed }
			require.Equal(t, span(401, 500), part(t, log, 400, 500))
			require.Equal(t, span(401, 500), part(t, log, 400, 500))
		})
	}
}

func TestAServerThatRejectsEverythingIsAnError(t *testing.T) {
	s := longRun(t, 500)
	log := eventlog.New(s, "", nil)
	part(t, log, 0, 500)
	denied := serviceerror.NewPermissionDenied("not yours", "")
	s.fail = func(string) error { return denied }
	for _, err := range log.Events(t.Context(), "demo", "demo:0400") {
		require.ErrorIs(t, err, denied)
	}
}

// The reference model is the list of counters.
func TestPagesOfAGrowingLogAreComplete(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := longRun(t, 1)
		log := eventlog.New(s, "", nil)
		for last := 1; last < 600; {
			after := rapid.IntRange(0, last).Draw(r, "after")
			most := rapid.IntRange(1, 300).Draw(r, "most")
			require.Equal(r, span(after+1, min(after+most, last)), part(t, log, after, most))
			more := rapid.IntRange(0, 150).Draw(r, "more")
			s.runs[0].grow(t, last+1, last+more)
			last += more
			if rapid.IntRange(0, 9).Draw(r, "restart") == 0 {
				s.tokens = map[string]token{}
			}
			if more == 0 {
				break
			}
		}
	})
}

func TestAnEmptyPageDoesNotEndAHistory(t *testing.T) {
	s := longRun(t, 21) // 64 entries
	log := eventlog.New(s, "", nil)
	require.Equal(t, span(1, 21), part(t, log, 0, 100))
	s.runs[0].grow(t, 22, 30)
	require.Equal(t, span(22, 30), part(t, log, 21, 100), "the first page after the bookmark is empty")
}

func TestFollowResumesAtABookmark(t *testing.T) {
	s := longRun(t, 500)
	log := eventlog.New(s, "", nil)
	part(t, log, 0, 500)
	s.entries = 0
	s.runs[0].onEnd = func() { s.runs[0].grow(t, 501, 503) }
	require.Equal(t, lines(501, 503), followed(t, log, "demo:0500", 3))
	require.LessOrEqual(t, s.entries, 3*64)
}

func TestRawHistoriesAreDecoded(t *testing.T) {
	s := longRun(t, 100)
	s.isRaw = true
	require.Equal(t, span(1, 100), part(t, eventlog.New(s, "", nil), 0, 100))
}

// raw encodes a page like a server that sends raw histories.
func raw(t testing.TB, history *historypb.History) []*commonpb.DataBlob {
	t.Helper()
	var blobs []*commonpb.DataBlob
	for _, entry := range history.GetEvents() {
		data, err := proto.Marshal(&historypb.History{Events: []*historypb.HistoryEvent{entry}})
		require.NoError(t, err)
		blobs = append(blobs, &commonpb.DataBlob{EncodingType: enumspb.ENCODING_TYPE_PROTO3, Data: data})
	}
	return blobs
}

func TestBookmarksAreBounded(t *testing.T) {
	bytes := eventlog.BookmarkBytes(t, func(add func(runID string, entry int, token []byte)) {
		for run := range 3_000 {
			for page := range 60 {
				add(fmt.Sprint("run ", run), 100*(page+1), make([]byte, 400))
			}
		}
	})
	require.LessOrEqual(t, bytes, 8<<20)
	require.Greater(t, bytes, 7<<20)
}

func TestAPageFetchesFewSegments(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	register(t, a, "demo", "A", "", 0)
	const segments, each = 100, 10
	for n := range segments {
		fill(t, a, "demo", n*each+1, (n+1)*each)
	}
	log := eventlog.New(newServer(t), "", a)
	bucket.SetLatency(5 * time.Millisecond)
	// The larger page is last: fetches of segments that it does not need may still run when
	// it is complete.
	for _, page := range []struct{ events, segments int }{{1, 1}, {15, 1 + 4}} {
		before := bucket.Reads()
		require.Equal(t, span(501, 500+page.events), part(t, log, 500, page.events))
		// A segment is an entry and a blob. The registrations are read first.
		require.LessOrEqual(t, bucket.Reads()-before, 3+2*page.segments)
	}
}
