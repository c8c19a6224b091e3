package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Sessions hands the sessions of scheduled attempts from the workflows of a process to its activities, which thus
// need no query. Sessions are immutable and shared. A nil Sessions is empty.
type Sessions struct {
	mu        sync.Mutex
	byAttempt map[sessionKey]*handedOver
}

type sessionKey struct {
	runID, requestID string
	attempt          int
}

type handedOver struct{ session reducer.Session }

// NewSessions returns an empty Sessions.
func NewSessions() *Sessions { return &Sessions{byAttempt: map[sessionKey]*handedOver{}} }

// Put stores the session of an attempt until drop is called. A later Put of the same attempt replaces it: the
// server can lose a workflow task, whose attempt is then decided again. Drop has no effect on its replacement, nor
// when it is called again.
func (s *Sessions) Put(runID, requestID string, attempt int, session reducer.Session) (drop func()) {
	if s == nil {
		return func() {}
	}
	key, entry := sessionKey{runID, requestID, attempt}, &handedOver{session}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byAttempt[key] = entry
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byAttempt[key] == entry {
			delete(s.byAttempt, key)
		}
	}
}

// Get returns the session of an attempt, if its newest event is that with the id through, recorded at throughAt.
func (s *Sessions) Get(runID, requestID string, attempt int, through string, throughAt time.Time) (session reducer.Session, ok bool) {
	if s == nil {
		return session, false
	}
	s.mu.Lock()
	entry := s.byAttempt[sessionKey{runID, requestID, attempt}]
	s.mu.Unlock()
	if entry == nil || !isThrough(entry.session, through, throughAt) {
		return session, false
	}
	return entry.session, true
}

// isThrough reports whether a session ends with an event. Logs with the same number of events differ in the time
// of the last one, because each workflow task has its own time.
func isThrough(s reducer.Session, through string, throughAt time.Time) bool {
	return s.LastEventID() == through && s.LastEventAt.Equal(throughAt)
}

// snapshotTimeout bounds the query for a session. The worker that has cached the workflow may be dead, and the server
// would wait for it for several seconds.
const snapshotTimeout = 2 * time.Second

// session returns the session of the attempt: from the workflow in this process, by a query, or from the log,
// because the workflow's worker may be unavailable, or the session too large for a query.
func (g *generation) session(ctx context.Context) (reducer.Session, error) {
	run := g.info.WorkflowExecution
	if session, ok := g.options.Sessions.Get(run.RunID, g.in.RequestID, g.in.Attempt, g.in.Through, g.in.ThroughAt); ok {
		return session, nil
	}
	g.metrics.SnapshotMisses.Add(1)
	session, err := g.querySession(ctx, run)
	if err == nil || ctx.Err() != nil {
		return session, err
	}
	session, logErr := g.foldSession(ctx, run)
	if logErr != nil {
		return session, errors.Join(fmt.Errorf("query the session of context %s: %w", g.in.ContextName, err), logErr)
	}
	return session, nil
}

func (g *generation) querySession(ctx context.Context, run workflow.Execution) (session reducer.Session, err error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	value, err := g.options.Temporal.QueryWorkflow(ctx, run.ID, run.RunID, wire.QuerySnapshot, g.in.RequestID, g.in.Attempt)
	if err == nil {
		err = value.Get(&session)
	}
	if err == nil && !isThrough(session, g.in.Through, g.in.ThroughAt) {
		err = fmt.Errorf("it ends with event %q of %v (want %s of %v)", session.LastEventID(), session.LastEventAt, g.in.Through, g.in.ThroughAt)
	}
	return session, err
}

func (g *generation) foldSession(ctx context.Context, run workflow.Execution) (session reducer.Session, err error) {
	var events []event.Event
	for e, err := range g.log.Run(ctx, g.in.ContextName, run.RunID, "") {
		if err != nil {
			return session, err
		}
		if events = append(events, e); e.ID == g.in.Through {
			break
		}
	}
	session = reducer.Load(g.in.ContextName, g.options.Reduce, events...)
	if session.LastEventID() != g.in.Through || session.Request == nil {
		return session, fmt.Errorf("read the session of context %s: the log ends with event %q (want %s)", g.in.ContextName, session.LastEventID(), g.in.Through)
	}
	session.Request.Steps, session.Request.Limit, session.Request.Compaction = g.in.Steps, g.in.Limit, g.in.Compaction
	return session, nil
}

// throughOf returns the newest event in the request; the newest event of the session is that it was started.
func throughOf(s reducer.Session) string {
	if s.Request == nil {
		return s.LastEventID()
	}
	return cmp.Or(s.Request.Through, s.LastEventID())
}
