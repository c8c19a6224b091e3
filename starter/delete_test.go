package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

func (f *fakeContext) Delete(_ context.Context, o client.DeleteOptions) (client.Deletion, error) {
	f.asked = append(f.asked, "delete "+string(o.Forks))
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)
	done := client.Deletion{
		ContextName: "demo", StartedAt: at, EndedAt: at,
		Removed:   []wire.Removed{{Place: wire.PlaceRuns, Count: 2, At: at}, {Place: wire.PlaceCursors}},
		KeptForks: []string{"kept"}, DeletedForks: []string{"copy"}, Remains: []string{"backups"},
	}
	if o.Progress != nil {
		o.Progress(client.Deletion{Removed: done.Removed, DeletedForks: done.DeletedForks})
	}
	return done, f.err
}

func (f *fakeContext) StartDeletion(context.Context, client.DeleteOptions) error { panic("unexpected") }
func (f *fakeContext) Deletion(context.Context) (client.Deletion, error)         { panic("unexpected") }

func TestDeletePrintsAReceipt(t *testing.T) {
	f := newFake(t)
	require.Equal(t, outcome{0, `PLACE    REMOVED  AT
runs     2        2026-01-02 15:04:05
cursors  0        -
`, "deleting context demo: Temporal deletes histories within half a minute\nfork kept has its own copy of what it shared\nfork copy was deleted, too\nremains: backups\n"}, starter(t, f, "", "delete", "-n", "demo", "--yes"))
	got := starter(t, f, "", "delete", "-n", "demo", "--yes", "--forks", "delete", "--json")
	require.Zero(t, got.code)
	require.Contains(t, got.out, `"removed":[{"place":"runs","count":2,"at":"`)
	require.Equal(t, []string{"delete keep", "delete delete"}, f.asked)

	f.err = client.ErrNoContext
	require.Equal(t, exit.NoContext, starter(t, f, "", "delete", "-n", "demo", "--yes").code)
	f.err = errors.New("no route")
	require.Equal(t, exit.Failure, starter(t, f, "", "delete", "-n", "demo", "--yes").code)
}

func TestDeleteShowsItsProgressOnATerminal(t *testing.T) {
	got := runStarter(t, t.Context(), &fakeClient{context: newFake(t)}, streams{in: strings.NewReader(""), errTerminal: true}, "delete", "-n", "demo", "--yes")
	require.Zero(t, got.code)
	require.Contains(t, got.errOut, "\rremoved so far: runs 2, forks done 1\x1b[K\r\x1b[K")
}

func TestADeletionThatFailsShowsWhatItRemoved(t *testing.T) {
	f := newFake(t)
	f.err = errors.New("delete context demo: a part is lost (delete the forks, too)")
	got := starter(t, f, "", "delete", "-n", "demo", "--yes")
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.out, "runs     2")
	require.Contains(t, got.errOut, "(delete the forks, too)")
	f.err = fmt.Errorf("delete context demo: %w: its choice for forks is delete", client.ErrDeleting)
	require.Equal(t, exit.Failure, starter(t, f, "", "delete", "-n", "demo", "--yes").code)
}

func TestDeleteAsksOnATerminal(t *testing.T) {
	for answer, want := range map[string]struct {
		code  int
		asked []string
	}{
		"demo\n":  {0, []string{"delete keep"}},
		"demo":    {0, []string{"delete keep"}},
		"y\n":     {exit.Failure, nil},
		"":        {exit.Failure, nil},
		"other\n": {exit.Failure, nil},
	} {
		f := newFake(t)
		got := runStarter(t, t.Context(), &fakeClient{context: f}, streams{in: strings.NewReader(answer), inTerminal: true, errTerminal: true},
			"delete", "-n", "demo")
		require.Equal(t, want.code, got.code, answer)
		require.Equal(t, want.asked, f.asked)
		require.Contains(t, got.errOut, "Delete context demo for ever? Type its name to confirm: ")
	}
}

func TestDeleteRejectsInvalidArguments(t *testing.T) {
	f := newFake(t)
	for _, args := range [][]string{{}, {"--forks", "all", "--yes"}, {"--yes", "demo"}} {
		require.Equal(t, exit.Usage, starter(t, f, "demo\n", append([]string{"delete", "-n", "demo"}, args...)...).code, args)
	}
	require.Equal(t, exit.Usage, starter(t, f, "", "delete", "--yes").code)
	require.Empty(t, f.asked)
}
