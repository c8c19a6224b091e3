package eventlog_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/blobstest"
)

func TestFollowersReadTheLogDespiteResetsAndOutages(t *testing.T) {
	immediately := make(chan struct{})
	close(immediately)
	rapid.Check(t, func(rt *rapid.T) {
		w := newChangingServer(t, rt)
		var followed []string
		for e, err := range eventlog.New(w, "", w.archive).Follow(t.Context(), "demo", "", eventlog.FollowOptions{Wake: immediately}) {
			require.NoError(rt, err)
			text := line(e)
			rt.Log("read", text)
			counter := event.Counter(e.ID)
			require.LessOrEqual(rt, counter, len(followed)+1, "no event is skipped")
			if followed = append(followed[:counter-1], text); w.hasEnded && text == w.end {
				break
			}
		}
		require.Equal(rt, w.log(), followed)
		for _, r := range w.runs[:len(w.runs)-1] {
			r.isDeleted = true
		}
		require.Equal(rt, followed, w.log(), "after the retention period")
	})
}

func TestFollowersOfRunsReadTheLogDespiteResetsAndOutages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newChangingServer(t, rt)
		var position archive.Position
		var followed []string
		for hasReadEnd := false; !hasReadEnd; {
			w.change()
			run := w.current()
			if !run.isRegistered {
				continue // a hook is called by a run that recorded something
			}
			atMost := rapid.IntRange(1, 5).Draw(rt, "at most")
			read := 0
			for e, err := range eventlog.New(w, "", w.archive).FollowRun(t.Context(), "demo", run.id, position) {
				if err != nil || e.ID == "" {
					break
				}
				text := line(e.Event)
				rt.Log("read", text, "of", e.RunID)
				counter := event.Counter(e.ID)
				require.LessOrEqual(rt, counter, len(followed)+1, "no event is skipped")
				followed = append(followed[:counter-1], text)
				read++
				position = archive.Position{RunID: e.RunID, After: counter}
				if hasReadEnd = w.hasEnded && text == w.end; hasReadEnd || read == atMost {
					break
				}
			}
		}
		require.Equal(rt, w.log(), followed)
	})
}

// changingServer is a server whose context changes at random before each request of a follower: runs
// register, record, continue as new, are terminated and reset, and the server and the archive fail.
type changingServer struct {
	*server
	rt        *rapid.T
	bucket    *blobstest.Bucket
	archive   *archive.Archive
	workers   *eventlog.Log
	restored  map[string]*restored
	isWorking bool // requests are those of workers
	left      int  // changes
	texts     int
	end       string // the last event
	hasEnded  bool
}

// restored is a run and what its worker knows of it.
type restored struct {
	*run
	continued    string // the run that continued as new; "": none
	isReset      bool
	isRegistered bool
	restoredAt   int   // length of the history when it had restored the session; 0: not yet
	tasks        []int // lengths of the history after workflow tasks
	after, last  int   // counters: of the last event before the run, and of the newest event
}

func newChangingServer(t *testing.T, rt *rapid.T) *changingServer {
	bucket := blobstest.Open()
	rt.Cleanup(func() { _ = bucket.Store.Close() })
	w := &changingServer{server: newServer(t), rt: rt, bucket: bucket, archive: archive.New(bucket.Store), restored: map[string]*restored{}}
	w.workers = eventlog.New(w, "", w.archive)
	w.left = rapid.IntRange(3, 40).Draw(rt, "changes")
	w.fail = func(string) error {
		w.maybeChange()
		switch {
		case w.hasEnded || w.left < 0 || rapid.IntRange(0, 30).Draw(rt, "server fails") > 0:
			return nil
		case w.isWorking: // not repeated at once
			return serviceerror.NewPermissionDenied("no route", "")
		}
		return serviceerror.NewUnavailable("refused")
	}
	w.start(&restored{run: newRun("", "")})
	return w
}

func (w *changingServer) log() (lines []string) {
	w.isWorking = true
	for e, err := range w.workers.Events(w.t.Context(), "demo", "") {
		require.NoError(w.rt, err)
		lines = append(lines, line(e))
	}
	return lines
}

func (w *changingServer) DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	w.maybeChange()
	return w.server.DescribeWorkflowExecution(ctx, workflowID, runID)
}

func (w *changingServer) maybeChange() {
	if !w.isWorking && rapid.IntRange(0, 2).Draw(w.rt, "now") == 0 {
		w.change()
	}
}

// awaitChange changes the context until the run has a longer history or is closed.
func (w *changingServer) awaitChange(r *restored) {
	for length := len(r.history); len(r.history) == length && w.current() == r; {
		w.change()
	}
	r.onEnd = func() { w.awaitChange(r) }
}

func (w *changingServer) current() *restored { return w.restored[w.runs[len(w.runs)-1].id] }

func (w *changingServer) change() {
	w.isWorking = true
	defer func() { w.isWorking = false }()
	r := w.current()
	if w.left--; w.left < 0 {
		require.False(w.rt, w.hasEnded && w.left < -200, "the follower has read the last event")
		w.finish(r)
		return
	}
	switch change := rapid.IntRange(0, 9).Draw(w.rt, "change"); {
	case change < 3 && r.isRegistered:
		w.say(r)
	case change < 5 && !r.isRegistered:
		w.register(r)
	case change == 5 && r.isRegistered && r.last > 0:
		w.rt.Log(r.id, "continues as new")
		w.start(&restored{run: newRun("", r.id), continued: r.id, after: r.last, last: r.last})
	case change == 6:
		w.rt.Log(r.id, "is terminated")
		w.start(&restored{run: newRun("", "")})
	case change == 7 || change == 8:
		w.reset(r)
	case change == 9:
		var err error
		if rapid.Bool().Draw(w.rt, "archive fails") {
			err = errors.New("no route")
		}
		w.bucket.Fail(err)
	}
}

func (w *changingServer) finish(r *restored) {
	w.bucket.Fail(nil)
	w.register(r)
	require.True(w.rt, r.isRegistered)
	if !w.hasEnded {
		w.end = w.say(r)
		w.hasEnded = true
	}
}

func (w *changingServer) start(r *restored) {
	r.id = fmt.Sprint("run", len(w.runs)+1)
	r.onEnd = func() { w.awaitChange(r) }
	r.tasks = append(r.tasks, len(r.history))
	w.runs = append(w.runs, r.run)
	w.restored[r.id] = r
}

func (w *changingServer) record(r *restored, body event.Body) string {
	r.last++
	entry := record(w.t, r.last, body)
	r.history = append(r.history, entry)
	r.tasks = append(r.tasks, len(r.history))
	events, err := eventlog.Decode(entry)
	require.NoError(w.rt, err)
	w.rt.Log(r.id, "records", line(events[0]))
	return line(events[0])
}

func (w *changingServer) say(r *restored) string {
	w.texts++
	return w.record(r, says(fmt.Sprint("m", w.texts))[0])
}

func (w *changingServer) reset(base *restored) {
	if rapid.IntRange(0, 3).Draw(w.rt, "of another run") == 0 {
		base = w.restored[rapid.SampledFrom(w.runs).Draw(w.rt, "base").id]
	}
	through := rapid.IntRange(0, len(base.tasks)-1).Draw(w.rt, "through")
	length := base.tasks[through]
	r := &restored{run: &run{}, continued: base.continued, isReset: true, after: base.after, last: base.after, tasks: slices.Clone(base.tasks[:through])}
	if base.restoredAt <= length {
		r.restoredAt = base.restoredAt
	}
	for _, entry := range base.history[:length] {
		r.history = append(r.history, entry)
		events, err := eventlog.Decode(entry)
		require.NoError(w.rt, err)
		r.last = max(r.last, lastCounter(events))
	}
	r.history = append(r.history, reset(base.id))
	w.rt.Log(base.id, "is reset after", r.last)
	w.start(r)
}

func lastCounter(events []event.Event) int {
	if len(events) == 0 {
		return 0
	}
	return event.Counter(events[len(events)-1].ID)
}

// register does what a worker does before it records input: a new session begins with an event.
func (w *changingServer) register(r *restored) {
	if r.isRegistered {
		return
	}
	begins, err := w.open(r)
	w.rt.Log(r.id, "registers:", err)
	if err != nil {
		return
	}
	r.isRegistered = true
	r.history = append(r.history, marker("registered", nil))
	if begins != nil {
		w.record(r, begins)
	}
	r.restoredAt = cmp.Or(r.restoredAt, len(r.history))
	r.tasks = append(r.tasks, len(r.history))
}

// open does what the activity Open does. It returns the first event of a new session, or nil.
func (w *changingServer) open(r *restored) (begins event.Body, err error) {
	ctx := w.t.Context()
	base, isContinued := "", r.continued != "" && r.restoredAt == 0
	if r.isReset && !isContinued {
		if base, err = w.workers.Base(ctx, "demo", r.id); err != nil {
			return nil, err
		}
	}
	if r.restoredAt == 0 && !isContinued {
		opened, err := w.workers.Open(ctx, "demo", r.id, base)
		if err == nil {
			r.after, r.last = opened.Run.After, opened.Run.After
		}
		return session(opened.Run.Behind), err
	}
	behind, through := base, math.MaxInt
	if isContinued {
		behind, through = r.continued, r.last
	}
	return nil, w.workers.Continue(ctx, "demo", archive.Run{ID: r.id, After: r.last, Behind: behind}, through)
}
