package activities_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestSnapshotsHoldTheNewestSessionOfARun(t *testing.T) {
	s := activities.NewSessionCache(0)
	slot := s.Entry("run")
	_, ok := s.Get("run")
	require.False(t, ok, "a slot is empty at first")
	for n := range 3 {
		slot.Put(reducer.Session{EventCount: n})
		got, ok := s.Get("run")
		require.True(t, ok)
		require.Equal(t, n, got.EventCount)
	}
	_, ok = s.Get("another run")
	require.False(t, ok)
	slot.Remove()
	slot.Remove()
	_, ok = s.Get("run")
	require.False(t, ok)
}

func TestAnOlderInstanceOfAWorkflowDoesNotDropWhatANewerOnePut(t *testing.T) {
	s := activities.NewSessionCache(0)
	older, newer := s.Entry("run"), s.Entry("run")
	older.Put(reducer.Session{EventCount: 1})
	newer.Put(reducer.Session{EventCount: 2})
	older.Remove()
	got, ok := s.Get("run")
	require.True(t, ok)
	require.Equal(t, 2, got.EventCount)
	newer.Remove()
	_, ok = s.Get("run")
	require.False(t, ok)
}

func TestWithoutSnapshotsNothingIsHeld(t *testing.T) {
	var s *activities.SessionCache
	slot := s.Entry("run")
	slot.Put(reducer.Session{EventCount: 1})
	_, ok := s.Get("run")
	require.False(t, ok)
	slot.Remove()
}

// withText is a session with one message.
func withText(text string) reducer.Session {
	s := reducer.NewSession("demo")
	s.EventCount = len(text)
	s.Reduced.Messages = []reducer.Message{{Role: reducer.RoleUser, Content: text}}
	return s
}

func TestSessionsBeyondTheBudgetAreParkedAndComeBackUnchanged(t *testing.T) {
	const contexts, each, budget = 40, 100_000, 3_000_000
	s := activities.NewSessionCache(budget)
	var slots []*activities.CacheEntry
	for n := range contexts {
		slot := s.Entry(fmt.Sprint(n))
		slot.Release(withText(strings.Repeat("x", each+n)))
		slots = append(slots, slot)
	}
	require.LessOrEqual(t, activities.Held(s), int64(budget))
	require.Positive(t, activities.Parked(s))
	for n, slot := range slots {
		want := withText(strings.Repeat("x", each+n))
		got, ok := s.Get(fmt.Sprint(n))
		require.True(t, ok)
		require.Equal(t, want, got, "Generate reads it")
		got, err := slot.Get()
		require.NoError(t, err)
		require.Equal(t, want, got, "a query reads it")
		got, err = slot.Acquire()
		require.NoError(t, err)
		require.Equal(t, want, got, "the workflow goes on with it")
		slot.Release(got)
		require.LessOrEqual(t, activities.Held(s), int64(budget))
	}
	for _, slot := range slots {
		slot.Remove()
	}
	require.Zero(t, activities.Held(s))
	require.Zero(t, activities.Parked(s))
}

func TestASessionInUseIsNotParked(t *testing.T) {
	s := activities.NewSessionCache(1)
	slot := s.Entry("busy")
	slot.Put(withText("busy"))
	s.Entry("other").Release(withText("other"))
	require.Zero(t, activities.Parked(s))
}

func TestSlotsAreUsedAndParkedAtTheSameTime(t *testing.T) {
	s := activities.NewSessionCache(20 * activities.CacheEntryBytes)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			slot := s.Entry(fmt.Sprint(n))
			defer slot.Remove()
			session := withText(strings.Repeat("y", 50_000+n))
			for range 50 {
				slot.Release(session)
				got, err := slot.Acquire()
				if !assert.NoError(t, err) || !assert.Equal(t, session, got) {
					return
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, activities.Held(s))
}
