package activities_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestCacheHoldsTheNewestSessionOfARun(t *testing.T) {
	cache := activities.NewSessionCache(0)
	entry := cache.Entry("run")
	_, ok := cache.Get("run")
	require.False(t, ok, "a new entry is empty")
	for n := range 3 {
		entry.Put(reducer.Session{EventCount: n})
		got, ok := cache.Get("run")
		require.True(t, ok)
		require.Equal(t, n, got.EventCount)
	}
	_, ok = cache.Get("another run")
	require.False(t, ok)
	entry.Remove()
	entry.Remove()
	_, ok = cache.Get("run")
	require.False(t, ok)
}

func TestRemoveKeepsTheEntryOfANewerInstance(t *testing.T) {
	cache := activities.NewSessionCache(0)
	older, newer := cache.Entry("run"), cache.Entry("run")
	older.Put(reducer.Session{EventCount: 1})
	newer.Put(reducer.Session{EventCount: 2})
	older.Remove()
	got, ok := cache.Get("run")
	require.True(t, ok)
	require.Equal(t, 2, got.EventCount)
	newer.Remove()
	_, ok = cache.Get("run")
	require.False(t, ok)
}

func TestNilCacheIsEmpty(t *testing.T) {
	var cache *activities.SessionCache
	entry := cache.Entry("run")
	entry.Put(reducer.Session{EventCount: 1})
	_, ok := cache.Get("run")
	require.False(t, ok)
	entry.Remove()
}

// withText returns a session with one message.
func withText(text string) reducer.Session {
	session := reducer.NewSession("demo")
	session.EventCount = len(text)
	session.Reduced.Messages = []reducer.Message{{Role: reducer.RoleUser, Content: text}}
	return session
}

func TestSessionsBeyondTheBudgetAreSpilledAndReadBack(t *testing.T) {
	const contexts, each, budget = 40, 100_000, 3_000_000
	cache := activities.NewSessionCache(budget)
	var entries []*activities.CacheEntry
	for n := range contexts {
		entry := cache.Entry(fmt.Sprint(n))
		entry.Release(withText(strings.Repeat("x", each+n)))
		entries = append(entries, entry)
	}
	require.LessOrEqual(t, activities.CacheSize(cache), int64(budget))
	require.Positive(t, activities.Spilled(cache))
	for n, entry := range entries {
		want := withText(strings.Repeat("x", each+n))
		got, ok := cache.Get(fmt.Sprint(n))
		require.True(t, ok)
		require.Equal(t, want, got, "for Generate")
		got, err := entry.Get()
		require.NoError(t, err)
		require.Equal(t, want, got, "for a query")
		got, err = entry.Acquire()
		require.NoError(t, err)
		require.Equal(t, want, got, "for the workflow")
		entry.Release(got)
		require.LessOrEqual(t, activities.CacheSize(cache), int64(budget))
	}
	for _, entry := range entries {
		entry.Remove()
	}
	require.Zero(t, activities.CacheSize(cache))
	require.Zero(t, activities.Spilled(cache))
}

func TestTheSizeOfASessionCoversItsLargeParts(t *testing.T) {
	large := strings.Repeat("x", 10_000)
	schema := event.Object(`{"title":"` + large + `"}`)
	extra := event.RequestSettings{Extra: schema}
	for name, change := range map[string]func(*reducer.Session){
		"settings of the context": func(s *reducer.Session) { s.Reduced.Config.Request = extra },
		"settings of the trigger": func(s *reducer.Session) { s.TriggerSettings = &extra },
		"settings of the request": func(s *reducer.Session) { s.Request = &reducer.Request{Settings: &extra} },
		"response format": func(s *reducer.Session) {
			s.Reduced.Config.Request.ResponseFormat = &event.ResponseFormat{Schema: schema}
		},
		"labels":         func(s *reducer.Session) { s.Reduced.Config.Request.Labels = map[string]string{"a": large} },
		"stop sequences": func(s *reducer.Session) { s.Reduced.Config.Request.Stop = []string{large} },
		"tools": func(s *reducer.Session) {
			s.Reduced.Config.Tools = &event.SetTools{Tools: event.ToolList{{Parameters: schema}}}
		},
		"conditions of approvals": func(s *reducer.Session) {
			s.Reduced.Config.Tools = &event.SetTools{Approve: event.ApprovalRules{{When: schema}}}
		},
		"arguments of a call": func(s *reducer.Session) {
			s.Request = &reducer.Request{Calls: []reducer.Call{{Arguments: []byte(schema)}}}
		},
		"the error of a call":      func(s *reducer.Session) { s.Request = &reducer.Request{Calls: []reducer.Call{{Error: large}}} },
		"the text of a message":    func(s *reducer.Session) { s.Reduced.Messages = []reducer.Message{{Content: large}} },
		"the ids of open calls":    func(s *reducer.Session) { s.OpenToolCalls = []string{large} },
		"client ids of its events": func(s *reducer.Session) { s.Recent = make([]reducer.Sent, 125) },
	} {
		t.Run(name, func(t *testing.T) {
			session := reducer.NewSession("demo")
			change(&session)
			cache := activities.NewSessionCache(0)
			cache.Entry("run").Release(session)
			require.GreaterOrEqual(t, activities.CacheSize(cache), int64(activities.CacheEntryBytes+10_000))
		})
	}
}

func TestSessionInUseIsNotEvicted(t *testing.T) {
	cache := activities.NewSessionCache(1)
	entry := cache.Entry("busy")
	entry.Put(withText("busy"))
	cache.Entry("other").Release(withText("other"))
	require.Zero(t, activities.Spilled(cache))
}

func TestConcurrentUseAndEviction(t *testing.T) {
	cache := activities.NewSessionCache(20 * activities.CacheEntryBytes)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			entry := cache.Entry(fmt.Sprint(n))
			defer entry.Remove()
			session := withText(strings.Repeat("y", 50_000+n))
			for range 50 {
				entry.Release(session)
				got, err := entry.Acquire()
				if !assert.NoError(t, err) || !assert.Equal(t, session, got) {
					return
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, activities.CacheSize(cache))
}
