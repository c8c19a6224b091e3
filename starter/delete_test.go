package main

import (
	"context"
	"errors"
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
	return client.Deletion{
		ContextName: "demo", StartedAt: at, EndedAt: at,
		Removed:   []wire.Removed{{Place: wire.PlaceRuns, Count: 2, At: at}, {Place: wire.PlaceCursors}},
		KeptForks: []string{"kept"},
		DeletedForks: []client.Deletion{{ContextName: "copy", Removed: []wire.Removed{
			{Place: wire.PlaceLog, Count: 3, At: at},
		}}},
		Remains: []string{"backups"},
	}, f.err
}

func (f *fakeContext) StartDeletion(context.Context, client.DeleteOptions) error { panic("unexpected") }
func (f *fakeContext) Deletion(context.Context) (client.Deletion, error)         { panic("unexpected") }

func TestDeletePrintsAReceipt(t *testing.T) {
	f := newFake(t)
	require.Equal(t, outcome{0, `CONTEXT  PLACE    REMOVED  AT
demo     runs     2        2026-01-02 15:04:05
demo     cursors  0        -
copy     log      3        2026-01-02 15:04:05
`, "deleting context demo; if a worker works for it, this takes a minute longer\nfork kept has its own copy of what it shared\nremains: backups\n"}, starter(t, f, "", "delete", "-n", "demo", "--yes"))
	got := starter(t, f, "", "delete", "-n", "demo", "--yes", "--forks", "delete", "--json")
	require.Zero(t, got.code)
	require.Contains(t, got.out, `"removed":[{"place":"runs","count":2,"at":"`)
	require.Equal(t, []string{"delete keep", "delete delete"}, f.asked)

	f.err = client.ErrNoContext
	require.Equal(t, exit.NoContext, starter(t, f, "", "delete", "-n", "demo", "--yes").code)
	f.err = errors.New("no route")
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
