package event_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestReusesKeyDetectsAnotherInputWithTheKey(t *testing.T) {
	id := event.KeyedIDs("key", []byte("body"))(0)
	require.Equal(t, id, event.KeyedIDs("key", []byte("body"))(0))
	require.NotEqual(t, id, event.KeyedIDs("key", []byte("body"))(1))
	require.LessOrEqual(t, len(event.KeyedIDs(strings.Repeat("k", 255), []byte("body"))(event.MaxInputEvents)), event.MaxClientEventID)
	for _, test := range []struct {
		name, other string
		reused      bool
	}{
		{"the same", id, false},
		{"another event of the input", event.KeyedIDs("key", []byte("body"))(1), false},
		{"another input", event.KeyedIDs("key", []byte("other"))(0), true},
		{"another event of another input", event.KeyedIDs("key", []byte("other"))(7), true},
		{"another key", event.KeyedIDs("other", []byte("other"))(0), false},
		{"no key", "mine", false},
		{"none", "", false},
		{"the prefix alone", "idempotency-", false},
		{"another form", "idempotency-a-b", false},
	} {
		require.Equal(t, test.reused, event.ReusesKey(id, test.other), test.name)
		require.Equal(t, test.reused, event.ReusesKey(test.other, id), test.name)
	}
}
