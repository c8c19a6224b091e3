package reducer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
)

// A run that continues as new compares its hashes with those of later releases. New fields of a body must be omitted
// when they are empty.
func TestHashesOfBodiesAreStable(t *testing.T) {
	var lines strings.Builder
	for _, body := range event.Examples() {
		fmt.Fprintf(&lines, "%08x %s\n", hashOf(event.New(body)), body.Tag())
	}
	golden.File(t, "testdata/hashes.golden", lines.String())
}

func TestARestoredSessionHasTheHashesOfTheNewestEvents(t *testing.T) {
	var log []event.Event
	for i := range MaxRecent + 5 {
		e := event.New(event.Note{Kind: event.NoteSystem, Content: fmt.Sprint(i)})
		e.ID, e.ContextName, e.ClientEventID = event.FormatID("demo", i+1), "demo", fmt.Sprintf("client-%d", i)
		log = append(log, e)
	}
	s := Load("demo", Reduce, log...)
	require.Len(t, s.Recent, MaxRecent)
	for i, sent := range s.Recent {
		require.Equal(t, hashOf(log[i+5]), sent.Hash)
	}
}
