package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestSnapshotsHoldTheNewestSessionOfARun(t *testing.T) {
	s := activities.NewSnapshots()
	slot := s.Slot("run")
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
	slot.Drop()
	slot.Drop()
	_, ok = s.Get("run")
	require.False(t, ok)
}

func TestAnOlderInstanceOfAWorkflowDoesNotDropWhatANewerOnePut(t *testing.T) {
	s := activities.NewSnapshots()
	older, newer := s.Slot("run"), s.Slot("run")
	older.Put(reducer.Session{EventCount: 1})
	newer.Put(reducer.Session{EventCount: 2})
	older.Drop()
	got, ok := s.Get("run")
	require.True(t, ok)
	require.Equal(t, 2, got.EventCount)
	newer.Drop()
	_, ok = s.Get("run")
	require.False(t, ok)
}

func TestWithoutSnapshotsNothingIsHeld(t *testing.T) {
	var s *activities.Snapshots
	slot := s.Slot("run")
	slot.Put(reducer.Session{EventCount: 1})
	_, ok := s.Get("run")
	require.False(t, ok)
	slot.Drop()
}
