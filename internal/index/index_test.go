package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/index"
)

func TestMessagesAreFoundAsTheyAreRecorded(t *testing.T) {
	s := newSource()
	s.record("demo", event.SessionStarted{}, user("The canary sings"), assistant("It does, in the mine"))
	x := open(t, s, "")
	defer x.Close()
	await(t, func() bool { return len(search(t, x, "canary")) == 1 })
	s.record("demo", user("And the sparrow?"))
	await(t, func() bool { return len(search(t, x, "sparrow")) == 1 })
	s.record("other", event.SessionStarted{}, user("A sparrow"))
	await(t, func() bool { return len(search(t, x, "sparrow")) == 2 })

	hit := search(t, x, "mine")[0]
	require.Equal(t, "demo:0003", hit.EventID)
	require.Equal(t, "assistant", hit.Role)
	require.Equal(t, []index.Fragment{{Text: "It does, in the "}, {Text: "mine", Match: true}}, hit.Fragments)
	found := list(t, x, index.Filter{})
	require.Equal(t, []string{"other", "demo"}, namesOf(found))
	require.Equal(t, "The canary sings", found[1].Preview)
	require.True(t, found[1].LastActiveAt.After(found[1].CreatedAt))
}

func TestAnIndexGoesOnWhereItWasClosed(t *testing.T) {
	s, dir := newSource(), t.TempDir()
	s.record("demo", event.SessionStarted{}, user("first"))
	x := open(t, s, dir)
	await(t, func() bool { return len(search(t, x, "first")) == 1 })
	x.Close()
	s.change(func() { s.logs["demo"].summary.ClosedAt = s.now })
	s.record("demo", user("second"))
	x = open(t, s, dir)
	defer x.Close()
	require.Len(t, search(t, x, "first"), 1)
	await(t, func() bool { return len(search(t, x, "second")) == 1 })
	require.Equal(t, []string{"demo:0002"}, idsOf(search(t, x, "first")))
	require.Equal(t, 1, s.reads["demo"], "of the whole log")
}

func TestALostNoticeCostsDelayOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.record("demo", event.SessionStarted{}, user("first"))
		x := open(t, s, "")
		defer x.Close()
		time.Sleep(time.Second) // bubble time, as everywhere in this test
		require.Len(t, search(t, x, "first"), 1)
		s.change(func() { s.isDeaf = true })
		s.record("demo", user("second"))
		s.record("new", event.SessionStarted{}, user("third"))
		time.Sleep(6 * time.Second)
		require.Len(t, search(t, x, "second"), 1)
		require.Len(t, search(t, x, "third"), 1)
	})
}

// A notice may precede what it is about.
func TestANoticeIsFollowedByASecondRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.record("demo", event.SessionStarted{}, user("first"))
		x := open(t, s, "")
		defer x.Close()
		time.Sleep(time.Second) // bubble time, as everywhere in this test
		s.notify("demo")
		time.Sleep(time.Second)
		s.change(func() { s.isDeaf = true })
		s.record("demo", user("second"))
		time.Sleep(2 * time.Second)
		require.Len(t, search(t, x, "second"), 1)
	})
}

func TestAnOutageCostsDelayOnly(t *testing.T) {
	s := newSource()
	s.record("demo", event.SessionStarted{}, user("first"))
	s.change(func() { s.err = client.ErrUnreachable })
	x := open(t, s, "")
	defer x.Close()
	s.record("demo", user("second"))
	s.change(func() { s.err = nil })
	await(t, func() bool { return len(search(t, x, "first second")) == 0 && len(search(t, x, "second")) == 1 })
}

func TestContextsWhoseLogsAreUnreadAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.record("demo", event.SessionStarted{}, event.SetDetails{Archived: new(true)})
		s.change(func() { s.isSlow = true })
		x := open(t, s, "")
		defer x.Close()
		found := list(t, x, index.Filter{})
		require.Equal(t, []string{"demo"}, namesOf(found))
		require.Zero(t, found[0].CreatedAt)
		require.Equal(t, 1, x.Unread())
		s.change(func() { s.isSlow = false })
		time.Sleep(10 * time.Second) // bubble time
		require.Zero(t, x.Unread())
		require.Empty(t, list(t, x, index.Filter{}))
		require.Len(t, list(t, x, index.Filter{Archived: true}), 1)
	})
}

// A context that was just created is in the list, though Temporal lists it later.
func TestANewContextIsListedBeforeTemporalListsIt(t *testing.T) {
	s := newSource()
	s.change(func() { s.hidden["demo"] = true })
	x := open(t, s, "")
	defer x.Close()
	require.Empty(t, list(t, x, index.Filter{}))
	s.record("demo", event.SessionStarted{}, user("first"))
	await(t, func() bool { return len(list(t, x, index.Filter{})) == 1 })
}

func TestAResetReplacesMessages(t *testing.T) {
	s := newSource()
	s.record("demo", event.SessionStarted{}, user("kept"), user("replaced"), user("gone"))
	x := open(t, s, "")
	defer x.Close()
	await(t, func() bool { return len(search(t, x, "gone")) == 1 })
	s.change(func() { s.logs["demo"].events = s.logs["demo"].events[:2] })
	s.record("demo", user("other"))
	await(t, func() bool { return len(search(t, x, "other")) == 1 })
	require.Len(t, search(t, x, "kept"), 1)
	require.Empty(t, search(t, x, "replaced"))
	require.Empty(t, search(t, x, "gone"))

	s.change(func() { s.logs["demo"].events = s.logs["demo"].events[:2] })
	s.record("demo", user("longer"), user("than"), user("before"))
	await(t, func() bool { return len(search(t, x, "before")) == 1 })
	require.Empty(t, search(t, x, "other"))
}

// What a fork shares is found once, as long as the origin has it.
func TestMessagesBeforeAForkAreFoundInItsOrigin(t *testing.T) {
	s, dir := newSource(), t.TempDir()
	s.record("demo", event.SessionStarted{}, user("shared"), user("origin"))
	s.fork("branch", "demo", 2, user("branch"))
	s.fork("twig", "branch", 4, user("twig"))
	x := open(t, s, dir)
	await(t, func() bool { return len(search(t, x, "twig")) == 1 && x.Pending() == 0 })
	require.Equal(t, []string{"demo:0002"}, idsOf(search(t, x, "shared")))
	require.Equal(t, []string{"branch:0004"}, idsOf(search(t, x, "branch")))

	s.change(func() { delete(s.logs, "demo") })
	s.notify("demo")
	await(t, func() bool { return len(list(t, x, index.Filter{})) == 2 && x.Pending() == 0 })
	require.Equal(t, []string{"branch:0002"}, idsOf(search(t, x, "shared")))

	// A namesake does not have them.
	s.record("demo", event.SessionStarted{}, user("namesake"))
	await(t, func() bool { return len(search(t, x, "namesake")) == 1 && x.Pending() == 0 })
	require.Equal(t, []string{"branch:0002"}, idsOf(search(t, x, "shared")))
	s.change(func() { delete(s.logs, "branch") })
	s.notify("branch")
	await(t, func() bool {
		return len(search(t, x, "shared")) == 1 && len(list(t, x, index.Filter{})) == 2 && x.Pending() == 0
	})
	require.Equal(t, []string{"twig:0002"}, idsOf(search(t, x, "shared")))
	x.Close()
}

func TestContextsThatOnlyTheBlobStoreHasAreFound(t *testing.T) {
	s := newSource()
	s.record("demo", event.SessionStarted{}, user("canary"), event.LLMRequestStarted{RequestID: "demo:r0001", Model: "m"},
		event.LLMRequestCompleted{RequestID: "demo:r0001"}, event.SetDetails{Title: new("A bird")}, event.SessionEnded{})
	s.fork("branch", "demo", 2, user("sparrow"))
	s.change(func() { s.expired["demo"], s.expired["branch"] = true, true })
	x := open(t, s, "")
	defer x.Close()
	unread, err := x.CatchUp(t.Context())
	require.NoError(t, err)
	require.Empty(t, unread)
	require.Equal(t, []string{"demo:0002"}, idsOf(search(t, x, "canary")))
	found := list(t, x, index.Filter{Status: "closed"})
	require.Equal(t, []string{"branch", "demo"}, namesOf(found))
	require.Equal(t, "demo", found[0].Root)
	demo := s.logs["demo"].events
	require.Equal(t, client.Summary{
		ContextName: "demo", Status: "closed", Turns: 1, Model: "m", Title: "A bird", StartedAt: demo[0].Timestamp, ClosedAt: demo[5].Timestamp,
	}, found[1].Summary)
}

func TestAContextStaysWhenTemporalForgetsItUntilItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		for _, name := range []string{"demo", "lost"} {
			s.record(name, event.SessionStarted{}, user("canary "+name))
			s.change(func() {
				s.logs[name].summary.Turns, s.logs[name].summary.Status, s.logs[name].summary.ClosedAt = 7, "closed", s.now
			})
		}
		x := open(t, s, "")
		defer x.Close()
		time.Sleep(time.Minute) // bubble time, as everywhere in this test
		s.change(func() { s.expired["demo"], s.expired["lost"] = true, true })
		asked := func() (n int) { s.change(func() { n = s.asked["demo"] }); return n }
		before := asked()
		time.Sleep(30 * time.Minute)
		require.Len(t, search(t, x, "canary"), 2)
		require.Equal(t, 7, list(t, x, index.Filter{})[0].Turns)
		require.LessOrEqual(t, asked()-before, 2, "it is not looked for in each pass")

		s.change(func() { delete(s.logs, "demo") })
		s.notify("demo")
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"lost"}, namesOf(list(t, x, index.Filter{})))
		s.change(func() { delete(s.logs, "lost") }) // the notice is lost
		time.Sleep(time.Hour)
		require.Empty(t, list(t, x, index.Filter{}))
		require.Empty(t, search(t, x, "canary"))
	})
}

// A deletion removes the histories before the log.
func TestADeletedContextLeavesWithoutANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.record("demo", event.SessionStarted{}, user("canary"))
		x := open(t, s, "")
		defer x.Close()
		time.Sleep(time.Minute) // bubble time, as everywhere in this test
		s.change(func() { s.expired["demo"] = true })
		time.Sleep(time.Minute)
		require.Len(t, search(t, x, "canary"), 1)
		s.change(func() { delete(s.logs, "demo") })
		time.Sleep(2 * time.Minute)
		require.Empty(t, search(t, x, "canary"))
	})
}

func TestAContextWhoseDeletionRunsWhenTheIndexOpensLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.record("demo", event.SessionStarted{}, user("canary"))
		s.change(func() { s.expired["demo"] = true })
		x := open(t, s, "")
		defer x.Close()
		time.Sleep(time.Minute) // bubble time
		require.Len(t, search(t, x, "canary"), 1)
		s.change(func() { delete(s.logs, "demo") })
		time.Sleep(2 * time.Minute)
		require.Empty(t, search(t, x, "canary"))
	})
}

func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// The text of a deleted context is in no file, also when the process ended before it was removed.
func TestADeletedContextLeavesNoText(t *testing.T) {
	s, dir := newSource(), t.TempDir()
	for i := range 50 {
		s.record(fmt.Sprintf("kept-%d", i), event.SessionStarted{}, user("Hello"))
		s.record(fmt.Sprintf("kept-%d", i), user("Hello again"))
	}
	s.record("demo", event.SessionStarted{}, user("canary"), assistant("A canary!"))
	s.record("later", event.SessionStarted{}, user("sparrow"))
	x := open(t, s, dir)
	await(t, func() bool {
		return x.Pending() == 0 && len(filesWith(t, dir, "canary")) > 0 && len(filesWith(t, dir, "sparrow")) > 0
	})
	s.change(func() { delete(s.logs, "demo") })
	s.notify("demo")
	await(t, func() bool { return len(filesWith(t, dir, "canary")) == 0 })
	require.Empty(t, search(t, x, "canary"))
	require.Len(t, search(t, x, "again"), 50)
	require.Empty(t, filesWith(t, dir, "demo"))

	// The next removal waits for its turn, which does not come.
	s.change(func() { delete(s.logs, "later") })
	s.notify("later")
	await(t, func() bool { return len(list(t, x, index.Filter{})) == 50 })
	x.Close()
	x = open(t, s, dir)
	defer x.Close()
	await(t, func() bool { return len(filesWith(t, dir, "sparrow")) == 0 })
	require.Len(t, search(t, x, "again"), 50)
}

// An index that lived through random changes equals one that is built from nothing.
func TestARebuiltIndexEqualsALiveOne(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				s, dir := newSource(), t.TempDir()
				x := open(t, s, dir)
				name := func() string { return fmt.Sprintf("demo-%d", random.IntN(6)) }
				for step := range 150 {
					at := name()
					l := s.logs[at]
					switch n := random.IntN(20); {
					case l == nil:
						s.record(at, event.SessionStarted{}, user(fmt.Sprintf("common begin%d", step)))
					case n < 8:
						s.record(at, user(fmt.Sprintf("common question%d", step)), assistant(fmt.Sprintf("answer%d", step)))
					case n < 9:
						s.change(func() { s.logs[at].events = s.logs[at].events[:1+random.IntN(len(l.events))] })
						s.record(at, user(fmt.Sprintf("reset%d", step)))
					case n < 11:
						s.change(func() { delete(s.logs, at) })
						s.notify(at)
					case n < 14:
						if fork := name(); s.logs[fork] == nil {
							s.fork(fork, at, 1+random.IntN(len(l.events)), user(fmt.Sprintf("fork%d", step)))
						}
					case n < 15:
						x.Close()
						x = open(t, s, dir)
					case n < 16:
						s.change(func() { l.summary.Status, l.summary.Turns = "closed", step })
					case n < 17:
						s.change(func() { s.isDeaf = !s.isDeaf })
					default:
						time.Sleep(time.Duration(random.IntN(10_000)) * time.Millisecond) // bubble time
					}
				}
				rebuilt := open(t, s, "")
				time.Sleep(time.Minute) // bubble time
				require.Equal(t, list(t, rebuilt, index.Filter{}), list(t, x, index.Filter{}))
				for _, word := range []string{"common", "begin", "answer", "fork", "reset"} {
					require.Equal(t, idsOf(search(t, rebuilt, word)), idsOf(search(t, x, word)), word)
				}
				require.NotEmpty(t, search(t, x, "common"))
				rebuilt.Close()
				x.Close()
			})
		})
	}
}

func TestACorruptDirectoryIsBuiltAnew(t *testing.T) {
	for name, corrupt := range map[string]func(t *testing.T, file string, data []byte) []byte{
		"other bytes": func(_ *testing.T, _ string, data []byte) []byte {
			data[len(data)/2] ^= 0xff
			return data
		},
		"cut":   func(_ *testing.T, _ string, data []byte) []byte { return data[:len(data)/2] },
		"empty": func(*testing.T, string, []byte) []byte { return nil },
	} {
		for _, pattern := range []string{"bleve/*.zap", "bleve/root.bolt"} {
			t.Run(name+" "+pattern, func(t *testing.T) {
				s, dir := newSource(), filepath.Join(t.TempDir(), "index")
				s.record("demo", event.SessionStarted{}, user("canary"))
				x := open(t, s, dir)
				await(t, func() bool { return len(filesWith(t, dir, "canary")) > 0 })
				x.Close()
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				require.NoError(t, err)
				require.NotEmpty(t, files)
				for _, file := range files {
					data, err := os.ReadFile(file)
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(file, corrupt(t, file, data), 0o600))
				}
				x = open(t, s, dir)
				defer x.Close()
				await(t, func() bool { return len(search(t, x, "canary")) == 1 })
			})
		}
	}
}

func TestAnIndexOfAnotherFormatIsBuiltAnew(t *testing.T) {
	s, dir := newSource(), t.TempDir()
	s.record("demo", event.SessionStarted{}, user("canary"))
	x := open(t, s, dir)
	await(t, func() bool { return len(filesWith(t, dir, "canary")) > 0 })
	x.Close()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "format"), []byte("chronicle index 0\n"), 0o600))
	s.change(func() { s.logs["demo"].events = nil }) // so that nothing is read
	s.change(func() { s.err = client.ErrUnreachable })
	x = open(t, s, dir)
	defer x.Close()
	require.Empty(t, filesWith(t, dir, "canary"))
}

// A directory that another process uses, or with other files, is left alone.
func TestADirectoryThatIsInUseIsNotUsed(t *testing.T) {
	s, dir := newSource(), t.TempDir()
	s.record("demo", event.SessionStarted{}, user("canary"))
	first := open(t, s, dir)
	defer first.Close()
	second := open(t, s, dir)
	await(t, func() bool { return len(search(t, first, "canary")) == 1 && len(search(t, second, "canary")) == 1 })
	second.Close()
	require.Len(t, search(t, first, "canary"), 1)

	foreign := t.TempDir()
	precious := filepath.Join(foreign, "precious")
	require.NoError(t, os.WriteFile(precious, []byte("data"), 0o600))
	x := open(t, s, foreign)
	await(t, func() bool { return len(search(t, x, "canary")) == 1 })
	x.Close()
	entries, err := os.ReadDir(foreign)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestATemporaryIndexLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left := filepath.Join(os.TempDir(), "chronicle-index-1") // of a process that was killed
	require.NoError(t, os.MkdirAll(filepath.Join(left, "bleve"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "format"), []byte("chronicle index 1\n"), 0o600))
	s := newSource()
	s.record("demo", event.SessionStarted{}, user("canary"))
	x := open(t, s, "")
	await(t, func() bool { return len(search(t, x, "canary")) == 1 })
	require.NoDirExists(t, left)
	x.Close()
	entries, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Pages have each context exactly once that is not active in the meantime, however many move.
func TestPagesStayRightWhileContextsMove(t *testing.T) {
	const n = 2500
	s := newSource()
	for i := range n {
		s.record(fmt.Sprintf("demo-%04d", i), user("Hello"))
	}
	x := open(t, s, "")
	defer x.Close()
	await(t, func() bool { return x.Pending() == 0 && len(list(t, x, index.Filter{})) == n })
	moved, seen := map[string]bool{}, map[string]int{}
	f := index.Filter{Limit: 100}
	for pages := 0; ; pages++ {
		page, more, err := x.List(t.Context(), f)
		require.NoError(t, err)
		for _, c := range page {
			seen[c.ContextName]++
		}
		if !more {
			break
		}
		f.After = index.PositionOf(page[len(page)-1])
		for range 20 {
			name := fmt.Sprintf("demo-%04d", rand.IntN(n))
			moved[name] = true
			s.record(name, user("Again"))
		}
	}
	for i := range n {
		if name := fmt.Sprintf("demo-%04d", i); !moved[name] {
			require.Equal(t, 1, seen[name], name)
		}
	}
	require.Less(t, len(moved), n/2)
	await(t, func() bool { return moved[list(t, x, index.Filter{})[0].ContextName] })
}

func TestContextsAreFiltered(t *testing.T) {
	s := newSource()
	for _, name := range []string{"demo-1", "Demo-2", "other", "last"} {
		s.record(name, user("Hello from "+name))
	}
	s.change(func() { s.logs["other"].summary.Status = "closed" })
	x := open(t, s, "")
	defer x.Close()
	await(t, func() bool { return x.Pending() == 0 && len(list(t, x, index.Filter{})) == 4 })
	for want, f := range map[string]index.Filter{
		"last other Demo-2 demo-1": {},
		"Demo-2 demo-1":            {Part: "dEMO"},
		"last Demo-2 demo-1":       {Status: "idle"},
		"other":                    {Status: "closed"},
		"":                         {Part: "nothing"},
	} {
		require.Equal(t, want, strings.Join(namesOf(list(t, x, f)), " "))
	}
}

func TestDetailsComeFromTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir := newSource(), t.TempDir()
		s.record("demo", event.SessionStarted{}, user("  Hello\n\n"+strings.Repeat("there ", 100)),
			event.SetDetails{Title: new("A \"title\""), Labels: map[string]string{"team": "support"}, Owner: "ann"})
		s.record("other", event.SessionStarted{}, user("Hello"))
		x := open(t, s, dir)
		time.Sleep(time.Second) // bubble time, as everywhere in this test
		found := list(t, x, index.Filter{})
		require.Equal(t, []string{"other", "demo"}, namesOf(found), "details are no activity")
		demo := found[1]
		require.Equal(t, `A "title"`, demo.Title)
		require.Equal(t, "ann", demo.Owner)
		require.Equal(t, "Hello "+strings.Repeat("there ", 18)+"there…", demo.Preview)
		require.True(t, demo.LastActiveAt.Before(found[0].LastActiveAt))
		for want, f := range map[string]index.Filter{
			"demo": {Part: "A \"TITLE"}, "other": {Part: "oth"}, "": {Label: "team=sales"},
		} {
			require.Equal(t, want, strings.Join(namesOf(list(t, x, f)), " "))
		}
		require.Equal(t, []string{"demo"}, namesOf(list(t, x, index.Filter{Label: "team=support", Owner: "ann"})))
		hits, _, err := x.Search(t.Context(), index.Query{Text: "hello", Label: "team=support", Limit: 10})
		require.NoError(t, err)
		require.Equal(t, []string{"demo:0002"}, idsOf(hits))
		require.Equal(t, `A "title"`, hits[0].Title)

		s.record("demo", event.SetDetails{Title: new(""), Archived: new(true)})
		time.Sleep(time.Second)
		require.Equal(t, []string{"other"}, namesOf(list(t, x, index.Filter{})))
		archived := list(t, x, index.Filter{Archived: true})
		require.Equal(t, []string{"demo"}, namesOf(archived))
		require.Empty(t, archived[0].Title)
		require.Len(t, search(t, x, "hello"), 2, "archived contexts are searched, too")

		x.Close()
		x = open(t, s, dir)
		defer x.Close()
		s.record("demo", user("I am back"))
		time.Sleep(time.Second)
		require.Equal(t, []string{"demo", "other"}, namesOf(list(t, x, index.Filter{})))
		require.Equal(t, "ann", list(t, x, index.Filter{})[0].Owner)
	})
}

// The time of a search is linear in the length of a message that repeats a word: else this test takes hours.
func TestAPhraseIsFoundAmongManyRepetitions(t *testing.T) {
	s := newSource()
	s.record("demo", event.SessionStarted{}, user(strings.Repeat("la ", 80_000)), user("la la land"), user("la, land la"))
	x := open(t, s, "")
	defer x.Close()
	await(t, func() bool { return len(search(t, x, "la ")) == 3 })
	for query, want := range map[string][]string{
		`"la la"`:                              {"demo:0002", "demo:0003"},
		`"la la land"`:                         {"demo:0003"},
		`"la land la"`:                         {"demo:0004"},
		`"land la land"`:                       nil,
		`"la" la.la.lan`:                       {"demo:0003"},
		`la.lan`:                               {"demo:0003", "demo:0004"},
		`"` + strings.Repeat("la ", 24) + `"`:  {"demo:0002"},
		`"` + strings.Repeat("lo ", 2) + `la"`: nil,
	} {
		require.Equal(t, want, idsOf(search(t, x, query)), query)
	}
}
