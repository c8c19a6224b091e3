package activities

import (
	"container/list"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// SessionCache holds the newest session of each run whose workflow a process executes, so that
// activities need no query. Sessions are immutable and shared. A session may be stale if its
// workflow has moved to another worker. It may also be ahead of the server: its newest events are not
// committed before their workflow task completes.
//
// The cache also bounds the memory of cached workflows; the SDK bounds only their number. Beyond
// the budget, it evicts the least recently used idle sessions to a temporary file. A nil
// SessionCache is empty.
type SessionCache struct {
	mu           sync.Mutex
	runs         map[string]*CacheEntry
	budget, size int64      // in bytes; budget 0: no bound
	idle         *list.List // of *CacheEntry with a session in memory, least recently used first
	spill        spillFile
}

// CacheEntryBytes approximates the memory of a cached workflow without its session.
const CacheEntryBytes = 48 << 10

// NewSessionCache returns an empty cache with an approximate budget in bytes. 0: no bound.
func NewSessionCache(budget int64) *SessionCache {
	return &SessionCache{runs: map[string]*CacheEntry{}, budget: budget, idle: list.New()}
}

// CacheEntry holds the session of one instance of a workflow.
type CacheEntry struct {
	cache   *SessionCache // nil: the entry is not shared
	runID   string
	session reducer.Session // unless spilled
	check   wire.StopCheck
	size    int64
	element *list.Element // in idle; nil: in use or spilled
	spilled *region       // nil: in memory
	uses    int           // counts changes of the fields above, so that evict notices them
}

// Entry returns a new entry for a run. Its first Put replaces the entry of an earlier instance.
func (c *SessionCache) Entry(runID string) *CacheEntry {
	return &CacheEntry{cache: c, runID: runID}
}

// Put stores the newest session of the run.
func (e *CacheEntry) Put(session reducer.Session) {
	if e.cache == nil {
		e.session = session
		return
	}
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.use()
	e.session, e.check = session, wire.StopCheckOf(session)
	e.cache.runs[e.runID] = e
}

// Release stores the session of a workflow that is idle until its next Acquire.
func (e *CacheEntry) Release(session reducer.Session) {
	e.Put(session)
	if e.cache == nil {
		return
	}
	size := CacheEntryBytes + sizeOf(session)
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.setSize(size)
	e.element = e.cache.idle.PushBack(e)
	e.cache.evict(e)
}

// Acquire returns the session to a workflow that resumes, or an error of reading the temporary file.
func (e *CacheEntry) Acquire() (reducer.Session, error) {
	session, err := e.Get()
	if err == nil {
		e.Put(session)
	}
	return session, err
}

// Get returns the session without acquiring it.
func (e *CacheEntry) Get() (reducer.Session, error) {
	if e.cache == nil {
		return e.session, nil
	}
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	return e.load()
}

// Remove empties the entry, and removes it from the cache unless a newer instance has replaced it.
func (e *CacheEntry) Remove() {
	if e.cache == nil {
		return
	}
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.use()
	e.setSize(0)
	e.session = reducer.Session{}
	if e.cache.runs[e.runID] == e {
		delete(e.cache.runs, e.runID)
	}
}

func (e *CacheEntry) use() {
	e.uses++
	if e.element != nil {
		e.cache.idle.Remove(e.element)
		e.element = nil
	}
	if e.spilled != nil {
		e.cache.spill.release(e.spilled)
		e.spilled = nil
	}
}

func (e *CacheEntry) setSize(size int64) {
	e.cache.size += size - e.size
	e.size = size
}

func (e *CacheEntry) load() (reducer.Session, error) {
	if e.spilled == nil {
		return e.session, nil
	}
	packed, err := e.cache.spill.read(e.spilled)
	if err != nil {
		return reducer.Session{}, err
	}
	return wire.Unpack(packed)
}

// evict spills sessions, except that of one entry, until the cache fits the budget. It releases the
// lock while it packs a session.
func (c *SessionCache) evict(except *CacheEntry) {
	for c.budget > 0 && c.size > c.budget {
		front := c.idle.Front()
		if front == nil || front.Value == except {
			return
		}
		e := front.Value.(*CacheEntry)
		c.idle.Remove(front)
		e.element = nil
		uses, session := e.uses, e.session
		c.mu.Unlock()
		packed, err := wire.Pack(session)
		c.mu.Lock()
		if e.uses != uses {
			continue
		}
		if err == nil {
			e.spilled, err = c.spill.write(packed)
		}
		if err != nil {
			return // the session stays in memory, and is not evicted before its next use
		}
		e.session = reducer.Session{}
		e.setSize(CacheEntryBytes)
	}
}

func (c *SessionCache) get(runID string) (session reducer.Session, ok bool) {
	c.read(runID, func(e *CacheEntry) {
		var err error
		session, err = e.load()
		ok = err == nil
	})
	return session, ok
}

func (c *SessionCache) stopCheck(runID string) (check wire.StopCheck, ok bool) {
	c.read(runID, func(e *CacheEntry) { check, ok = e.check, true })
	return check, ok
}

func (c *SessionCache) read(runID string, f func(*CacheEntry)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.runs[runID]; ok {
		f(e)
	}
}

// sizeOf approximates the memory of a session in bytes.
func sizeOf(session reducer.Session) int64 {
	size := session.Reduced.Size()
	size += len(session.Reduced.Refused) * (200 + event.MaxRefusalBytes)
	settings := func(s event.RequestSettings) {
		size += len(s.Extra)
		for _, stop := range s.Stop {
			size += len(stop)
		}
		for name, label := range s.Labels {
			size += len(name) + len(label)
		}
		if s.ResponseFormat != nil {
			size += len(s.ResponseFormat.Schema)
		}
	}
	settings(session.Reduced.Config.Request)
	if session.TriggerSettings != nil {
		settings(*session.TriggerSettings)
	}
	if tools := session.Reduced.Config.Tools; tools != nil {
		for _, tool := range tools.Tools {
			size += 100 + len(tool.Description) + len(tool.Parameters)
		}
		for _, rule := range tools.Approve {
			size += 100 + len(rule.When)
		}
	}
	for _, id := range session.OpenToolCalls {
		size += 16 + len(id)
	}
	if r := session.Request; r != nil {
		if r.Settings != nil && r.Settings != session.TriggerSettings {
			settings(*r.Settings)
		}
		for _, call := range r.Calls {
			size += 200 + len(call.Arguments) + len(call.Error)
		}
	}
	return int64(size + 80*len(session.Recent))
}
