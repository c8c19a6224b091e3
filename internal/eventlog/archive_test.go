package eventlog_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
	"github.com/seed-9ed7edd4/chronicle/internal/references"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// messages returns events first to last, each with its counter as text.
func messages(first, last int) (bodies []event.Body) {
	for n := first; n <= last; n++ {
		bodies = append(bodies, event.UserMessage{Content: fmt.Sprint("m", n)})
	}
	return bodies
}

// fill archives the events first to last of a context, one segment per registered run.
func fill(t testing.TB, a *archive.Archive, contextName string, first, last int) (segment archive.Segment) {
	t.Helper()
	folder, err := a.Folder(t.Context(), contextName)
	require.NoError(t, err)
	parts, err := folder.View(t.Context(), "", 0)
	require.NoError(t, err)
	for _, p := range parts {
		from, to := max(first, p.After+1), min(last, p.Through)
		var events []event.Event
		for i, body := range messages(from, to) {
			events = append(events, event.Event{ID: event.FormatID(contextName, from+i), ContextName: contextName, Timestamp: epoch, Body: body})
		}
		if len(events) > 0 {
			segment, err = a.Write(t.Context(), contextName, p.RunID, events)
			require.NoError(t, err)
		}
	}
	return segment
}

// register registers a run that continues another one.
func register(t testing.TB, a *archive.Archive, contextName, runID, behind string, after int) {
	t.Helper()
	folder, err := a.Folder(t.Context(), contextName)
	require.NoError(t, err)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: runID, After: after, Behind: behind}))
}

// archived returns an archive with the registered runs A, B and C of three events each,
// and segments of them.
func archived(t testing.TB, spans ...[2]int) (*archive.Archive, *blobstest.Bucket) {
	t.Helper()
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	register(t, a, "demo", "A", "", 0)
	register(t, a, "demo", "B", "A", 3)
	register(t, a, "demo", "C", "B", 6)
	for _, s := range spans {
		fill(t, a, "demo", s[0], s[1])
	}
	return a, bucket
}

// threeRuns returns the runs of archived.
func threeRuns(t testing.TB) *server {
	return newServer(t, messageRun(t, "A", "", 1, 3), messageRun(t, "B", "A", 4, 6), messageRun(t, "C", "B", 7, 9))
}

// messageRun returns a run with events first to last.
func messageRun(t testing.TB, id, continued string, first, last int) *run {
	return newRun(id, continued, record(t, first, messages(first, last)...))
}

// lines formats a range of events like format.
func lines(first, last int) string {
	var lines []string
	for n := first; n <= last; n++ {
		lines = append(lines, fmt.Sprintf("%d:m%d", n, n))
	}
	return strings.Join(lines, " ")
}

// formatUntil formats the events before an error, and returns the error.
func formatUntil(t testing.TB, log *eventlog.Log, from string) (string, error) {
	t.Helper()
	var texts []string
	for e, err := range log.Events(t.Context(), "demo", from) {
		if err != nil {
			return strings.Join(texts, " "), err
		}
		texts = append(texts, line(e))
	}
	return strings.Join(texts, " "), nil
}

func TestArchivedEventsAreNotReadFromHistories(t *testing.T) {
	for name, tc := range map[string]struct {
		segments [][2]int
		from     string
		want     string
		read     string // the runs whose histories were read
	}{
		"within a run":                  {[][2]int{{1, 4}}, "", lines(1, 9), "BC"},
		"to the end of a run":           {[][2]int{{1, 3}, {4, 6}}, "", lines(1, 9), "C"},
		"to the end":                    {[][2]int{{1, 9}}, "", lines(1, 9), "C"},
		"nothing archived":              {nil, "", lines(1, 9), "ABC"},
		"not the first run":             {[][2]int{{4, 6}}, "", lines(1, 9), "AC"},
		"from the start of a segment":   {[][2]int{{4, 6}}, "demo:0003", lines(4, 9), "C"},
		"from an event after a segment": {[][2]int{{1, 3}}, "demo:0005", lines(6, 9), "BC"},
		"from the newest event":         {[][2]int{{1, 3}}, "demo:0009", "", "C"},
		"from beyond the log":           {[][2]int{{1, 3}}, "demo:0099", "", "C"},
		"with a gap at event 4":         {[][2]int{{1, 3}, {5, 6}}, "", lines(1, 9), "BC"},
		"a part of each run":            {[][2]int{{1, 2}, {4, 5}}, "", lines(1, 9), "ABC"},
	} {
		t.Run(name, func(t *testing.T) {
			s := threeRuns(t)
			a, _ := archived(t, tc.segments...)
			require.Equal(t, tc.want, format(t, eventlog.New(s, "", a).Events(t.Context(), "demo", tc.from)))
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

// The reference model is the set of events in the archive and the histories.
func TestLostEventsAreGaps(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const events = 20
		s := newServer(t)
		bucket := blobstest.New(t)
		a := archive.New(bucket.Store)
		inRun := map[int]bool{}
		deleted := rapid.IntRange(0, 4).Draw(r, "deleted runs")
		for first := 1; first <= events; {
			last := rapid.IntRange(first, events).Draw(r, "last of a run")
			id := fmt.Sprint("R", len(s.runs))
			continued := ""
			if len(s.runs) > 0 {
				continued = s.runs[len(s.runs)-1].id
			}
			next := messageRun(t, id, continued, first, last)
			next.isDeleted = len(s.runs) < deleted && last < events
			for n := first; n <= last; n++ {
				inRun[n] = !next.isDeleted
			}
			s.runs = append(s.runs, next)
			register(t, a, "demo", id, continued, first-1)
			first = last + 1
		}
		inArchive := map[int]bool{}
		folder, err := a.Folder(t.Context(), "demo")
		require.NoError(r, err)
		parts, err := folder.View(t.Context(), "", 0)
		require.NoError(r, err)
		for _, p := range parts {
			for first, end := p.After+1, min(p.Through, events); first <= end; {
				last := rapid.IntRange(first, end).Draw(r, "last of a segment")
				segment := fill(t, a, "demo", first, last)
				isWhole := rapid.IntRange(0, 3).Draw(r, "whole") > 0
				if !isWhole {
					bucket.Set("contexts/demo/"+p.RunID+fmt.Sprintf("/%012d-%012d.json", segment.First, segment.Last), []byte("no"))
				}
				for n := first; n <= last; n++ {
					inArchive[n] = isWhole
				}
				first = last + 1
			}
		}

		from := rapid.IntRange(0, events).Draw(r, "from")
		got, err := formatUntil(t, eventlog.New(s, "", a), event.FormatID("demo", from))
		// The history has the events after the first damage.
		end := from
		for _, p := range parts {
			for end < min(p.Through, events) && end >= p.After && inArchive[end+1] {
				end++
			}
			for end < min(p.Through, events) && end >= p.After && inRun[end+1] {
				end++
			}
		}
		require.Equal(r, lines(from+1, end), got)
		if end == events {
			require.NoError(r, err)
			return
		}
		var gap *eventlog.GapError
		require.ErrorAs(r, err, &gap)
		require.Equal(r, end+1, gap.First)
		require.ErrorIs(r, err, blobs.ErrCorrupt)
	})
}

func TestLostEventsAreAGapError(t *testing.T) {
	s := threeRuns(t)
	s.runs[0].isDeleted = true
	a, _ := archived(t, [2]int{1, 1})
	got, err := formatUntil(t, eventlog.New(s, "", a), "")
	require.Equal(t, lines(1, 1), got)
	require.EqualError(t, err, "events 2 to 3 of context demo are neither in a history nor in the archive (the log continues after demo:0003)")
	require.Equal(t, lines(4, 9), format(t, eventlog.New(s, "", a).Events(t.Context(), "demo", "demo:0003")))
}

func TestADeletedContextIsReadFromTheArchive(t *testing.T) {
	a, bucket := archived(t, [2]int{1, 9})
	log := eventlog.New(newServer(t), "", a)
	require.Equal(t, lines(1, 9), format(t, log.Events(t.Context(), "demo", "")))
	require.Equal(t, lines(5, 9), format(t, log.Events(t.Context(), "demo", "demo:0004")))
	require.Empty(t, format(t, log.Events(t.Context(), "demo", "demo:0009")))
	require.Equal(t, lines(1, 6), format(t, log.Run(t.Context(), "demo", "B", "")))
	require.Equal(t, lines(1, 9), followed(t, log, "", 9))

	bucket.Set("contexts/demo/C/000000000007-000000000009.json", []byte("no"))
	read, err := formatUntil(t, log, "")
	require.Equal(t, lines(1, 6), read)
	require.ErrorIs(t, err, blobs.ErrCorrupt)
	require.ErrorContains(t, err, "events from 7 on of context demo are in no history, and the archive cannot be read: ")
}

func TestAnUnknownContextIsErrNoContext(t *testing.T) {
	log := eventlog.New(newServer(t), "", archive.New(blobstest.New(t).Store))
	_, err := formatUntil(t, log, "")
	require.ErrorIs(t, err, eventlog.ErrNoContext)
	require.EqualError(t, err, "look for context demo: no such context")
}

func TestAContextBeforeItsFirstRegistrationHasNoEvents(t *testing.T) {
	log := eventlog.New(newServer(t, newRun("A", "")), "", archive.New(blobstest.New(t).Store))
	require.Empty(t, format(t, log.Events(t.Context(), "demo", "")))
}

func TestAnUnavailableServerIsAnErrorAfterArchivedEvents(t *testing.T) {
	a, _ := archived(t, [2]int{1, 6})
	s := threeRuns(t)
	unreachable := serviceerror.NewPermissionDenied("no route", "")
	s.fail = func(string) error { return unreachable }
	read, err := formatUntil(t, eventlog.New(s, "", a), "")
	require.Equal(t, lines(1, 6), read)
	require.ErrorIs(t, err, unreachable)
}

func TestAForkStartsWithTheEventsOfItsOrigin(t *testing.T) {
	a := archive.New(blobstest.New(t).Store)
	register(t, a, "source", "S", "", 0)
	fill(t, a, "source", 1, 5)
	folder, err := a.Folder(t.Context(), "demo")
	require.NoError(t, err)
	require.NoError(t, folder.Register(t.Context(), archive.Run{ID: archive.ForkID, Origin: &archive.Origin{ContextName: "source", RunID: "S", At: 3}}))
	s := newServer(t, newRun("A", ""))
	log := eventlog.New(s, "", a)
	require.Equal(t, lines(1, 3), format(t, log.Events(t.Context(), "demo", "")), "before its first session")
	opened, err := log.Open(t.Context(), "demo", "A", "")
	require.NoError(t, err)
	require.Equal(t, archive.Run{ID: "A", After: 3, Behind: archive.ForkID}, opened.Run)
	require.Equal(t, 3, opened.Origin.At)
	require.Equal(t, "source", opened.Root)
	s.runs[0] = messageRun(t, "A", "", 4, 6)
	log = eventlog.New(s, "", a)
	require.Equal(t, lines(1, 6), format(t, log.Events(t.Context(), "demo", "")))
	require.Equal(t, lines(3, 6), followed(t, log, "demo:0002", 4))

	s.runs = append(s.runs, newRun("B", ""))
	opened, err = log.Open(t.Context(), "demo", "B", "")
	require.NoError(t, err)
	require.Nil(t, opened.Origin, "only the first session begins with the fork")
	require.Equal(t, "source", opened.Root)
}

// A reset of run B after event 4 makes run R, whose history starts with a copy of B's.
func TestAResetReplacesTheLog(t *testing.T) {
	a, _ := archived(t)
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("R", "A", record(t, 4, messages(4, 4)...), record(t, 5, says("other")...)))
	log := eventlog.New(s, "", a)
	require.Equal(t, lines(1, 9), format(t, log.Events(t.Context(), "demo", "")), "before it has registered")
	register(t, a, "demo", "R", "B", 4)
	require.Equal(t, lines(1, 4)+" 5:other", format(t, log.Events(t.Context(), "demo", "")))
	require.Equal(t, lines(1, 9), format(t, log.Run(t.Context(), "demo", "C", "")), "the abandoned branch")
	require.NoError(t, log.ArchiveRun(t.Context(), "demo", "R", 5))
	require.NoError(t, log.ArchiveRun(t.Context(), "demo", "C", 9))
	require.NoError(t, log.ArchiveRun(t.Context(), "demo", "R", 3), "earlier events belong to other runs")
}

// A run that closes before it registers leaves the log as it was.
func TestRegisteredDoesNotReadAResetRunWhileTheArchiveIsUnavailable(t *testing.T) {
	a, bucket := archived(t)
	s := threeRuns(t)
	s.runs = append(s.runs, newRun("R", "A", record(t, 4, messages(4, 4)...)))
	log := eventlog.New(s, "", a)
	require.Equal(t, lines(1, 9), format(t, log.Registered(t.Context(), "demo", "")))
	bucket.Fail(errors.New("no route"))
	require.Equal(t, lines(1, 4), format(t, log.Events(t.Context(), "demo", "")))
	elements := 0
	for e, err := range log.Registered(t.Context(), "demo", "") {
		elements++
		require.Zero(t, e)
		require.ErrorIs(t, err, blobs.ErrUnavailable)
	}
	require.Equal(t, 1, elements)
	require.Equal(t, lines(1, 4), format(t, eventlog.New(s, "", nil).Registered(t.Context(), "demo", "")), "without an archive")
}

func TestHistoriesAreReadWhileTheArchiveIsUnavailable(t *testing.T) {
	a, bucket := archived(t)
	s := threeRuns(t)
	log := eventlog.New(s, "", a)
	bucket.Fail(errors.New("no route"))
	require.Equal(t, lines(1, 9), format(t, log.Events(t.Context(), "demo", "")))
	s.runs = append(s.runs, newRun("D", "C")) // it has not opened yet
	require.Equal(t, lines(1, 9), format(t, log.Events(t.Context(), "demo", "")))
	require.Equal(t, lines(8, 9), followed(t, log, "demo:0007", 2))
	s.runs[1].isDeleted = true
	_, err := formatUntil(t, log, "")
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	require.ErrorContains(t, err, "events 1 to 6 of context demo are in no history, and the archive cannot be read")
}

// external returns the history entry of a record in the store.
func external(t testing.TB, store *blobs.Store, first int, bodies ...event.Body) *historypb.HistoryEvent {
	t.Helper()
	storage := eventlog.ExternalStorage(store)
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
	require.True(t, references.Is(stored.GetPayloads()[0]))
	details[wire.MarkerData] = &stored
	return h
}

func TestRecordsInTheStoreAreResolved(t *testing.T) {
	bucket := blobstest.New(t)
	a := archive.New(bucket.Store)
	register(t, a, "demo", "A", "", 0)
	s := newServer(t, newRun("A", "", external(t, bucket.Store, 1, messages(1, 3)...), record(t, 4, messages(4, 5)...)))
	require.Equal(t, lines(1, 5), format(t, eventlog.New(s, "", a).Events(t.Context(), "demo", "")))

	_, err := formatUntil(t, eventlog.New(s, "", nil), "")
	require.ErrorIs(t, err, eventlog.ErrNoArchive)
	require.ErrorContains(t, err, "run A: history event 2 is in a blob store")

	for _, name := range bucket.Names() {
		if strings.Contains(name, "sha256/") {
			bucket.Set(name, nil)
		}
	}
	_, err = formatUntil(t, eventlog.New(s, "", a), "")
	require.ErrorIs(t, err, blobs.ErrNotFound)
	require.ErrorContains(t, err, "run A: decode the record of history event 2: blob sha256/")
}

func TestALogWithoutAnArchiveIsReadableAfterRecordsInTheStore(t *testing.T) {
	bucket := blobstest.New(t)
	a := newRun("A", "", record(t, 1, messages(1, 1)...), external(t, bucket.Store, 2, messages(2, 4)...), record(t, 5, messages(5, 6)...))
	b := newRun("B", "A", external(t, bucket.Store, 7, messages(7, 8)...), record(t, 9, messages(9, 9)...))
	c := newRun("C", "B", record(t, 10, messages(10, 10)...), external(t, bucket.Store, 11, messages(11, 11)...))
	for name, test := range map[string]struct {
		runs       []*run
		unreadable map[int]string // what precedes an unreadable event, by the position
		readable   map[int]string
	}{
		"within a run":          {[]*run{a}, map[int]string{0: lines(1, 1), 1: "", 2: "", 3: ""}, map[int]string{4: lines(5, 6), 5: lines(6, 6), 6: ""}},
		"at the start of a run": {[]*run{a, b}, map[int]string{3: "", 4: "", 6: "", 7: ""}, map[int]string{8: lines(9, 9), 9: ""}},
		"at the end of the log": {[]*run{a, b, c}, map[int]string{8: lines(9, 10), 9: lines(10, 10), 10: "", 11: ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			log := eventlog.New(newServer(t, test.runs...), "", nil)
			for range 2 { // the second time with bookmarks
				for from, want := range test.unreadable {
					got, err := formatUntil(t, log, event.FormatID("demo", from))
					require.ErrorIs(t, err, eventlog.ErrNoArchive, from)
					require.Equal(t, want, got, from)
				}
				for from, want := range test.readable {
					require.Equal(t, want, format(t, log.Events(t.Context(), "demo", event.FormatID("demo", from))), from)
				}
			}
		})
	}
}
