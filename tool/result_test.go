package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/memblob"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

type callable interface {
	Call(context.Context, activities.ToolCallRequest) activities.ToolCallResult
}

// storing calls the tools of a worker with a store.
type storing struct {
	*tool.Set
	blobs *archive.Blobs
}

func (s storing) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	r.Blobs = s.blobs
	return s.Set.Call(ctx, r)
}

// producing returns a set with a store and the tool "produce", which returns the value.
func producing(t *testing.T, value any, options ...tool.Option) (storing, *blobs.Store) {
	t.Helper()
	store := blobs.New(memblob.OpenBucket(nil))
	t.Cleanup(func() { _ = store.Close() })
	produce := tool.Must(tool.New("produce", "Produce", func(context.Context, struct{}) (any, error) { return value, nil }, options...))
	set, err := tool.NewSet(tool.Options{Logger: slog.New(slog.DiscardHandler)}, produce)
	require.NoError(t, err)
	return storing{set, archive.New(store).Blobs("demo")}, store
}

// call returns the text of the result of a call.
func call(t *testing.T, set callable, name, arguments string) string {
	t.Helper()
	result := set.Call(t.Context(), request(name, arguments))
	require.False(t, result.IsError, string(result.Error))
	var text string
	require.NoError(t, json.Unmarshal(result.Value, &text))
	return text
}

var (
	refPattern  = regexp.MustCompile(`ref "([0-9a-f]{64})"`)
	partPattern = regexp.MustCompile(`\n\n\[bytes (\d+) to (\d+) of (\d+)\]$`)
)

// long is a text with characters of one to four bytes.
func long(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "line %d: aé€😀\n", i)
	}
	return b.String()
}

func TestLargeResultsAreShortenedAndCanBeRead(t *testing.T) {
	text := long(100_000)
	for _, test := range []struct {
		value any
		text  string
	}{
		{text, text},
		{map[string]string{"log": text}, `{"log":` + quoted(t, text) + `}`},
	} {
		set, _ := producing(t, test.value)
		shown := call(t, set, "produce", "{}")
		require.LessOrEqual(t, len(shown), tool.DefaultMaxResult)
		require.Greater(t, len(shown), tool.DefaultMaxResult*9/10)
		require.True(t, utf8.ValidString(shown))
		require.Contains(t, shown, fmt.Sprintf("[The result has %d bytes. Bytes ", len(test.text)))
		require.Contains(t, shown, "read them with the tool read_result")
		parts := strings.Split(shown, "\n\n[The result has ")
		require.True(t, strings.HasPrefix(test.text, parts[0]))
		_, tail, _ := strings.Cut(parts[1], "]\n\n")
		require.True(t, strings.HasSuffix(test.text, tail))
		var left struct{ from, to int }
		_, err := fmt.Sscanf(parts[1][strings.Index(parts[1], "Bytes "):], "Bytes %d to %d ", &left.from, &left.to)
		require.NoError(t, err)
		require.Equal(t, len(parts[0]), left.from)
		require.Equal(t, len(test.text)-len(tail), left.to)

		ref := refPattern.FindStringSubmatch(shown)[1]
		require.Equal(t, "sha256/"+ref, event.New(event.ToolResult{ToolCallID: "c", Value: json.RawMessage(quoted(t, shown))}).BlobRef())
		read, offset := "", 0
		for offset < len(test.text) {
			part := call(t, set, "read_result", fmt.Sprintf(`{"ref":%q,"offset":%d}`, ref, offset))
			require.True(t, utf8.ValidString(part))
			where := partPattern.FindStringSubmatch(part)
			require.Equal(t, []string{fmt.Sprint(offset), fmt.Sprint(len(test.text))}, []string{where[1], where[3]})
			read += strings.TrimSuffix(part, where[0])
			_, err := fmt.Sscan(where[2], &offset)
			require.NoError(t, err)
		}
		require.Equal(t, test.text, read)
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	require.NoError(t, err)
	return string(data)
}

// in returns the set for the calls of another context.
func (s storing) in(store *blobs.Store, contextName string) inContext {
	return inContext{storing{s.Set, archive.New(store).Blobs(contextName)}, contextName}
}

type inContext struct {
	storing
	contextName string
}

func (s inContext) Call(ctx context.Context, r activities.ToolCallRequest) activities.ToolCallResult {
	r.ContextName = s.contextName
	return s.storing.Call(ctx, r)
}

func TestAReferenceReadsNoResultOfAnotherContext(t *testing.T) {
	set, store := producing(t, long(50_000))
	ref := refPattern.FindStringSubmatch(call(t, set.in(store, "acme/demo"), "produce", "{}"))[1]
	for _, reader := range []string{"demo", "other/demo", "acme/another"} {
		result := set.in(store, reader).Call(t.Context(), request("read_result", `{"ref":"`+ref+`"}`))
		require.Contains(t, string(result.Error), "no result has this ref", reader)
	}
	data, err := archive.New(store).Blobs("acme/demo").Get(t.Context(), blobs.Ref("sha256/"+ref))
	require.NoError(t, err)
	_, err = archive.New(store).Blobs("other/demo").Put(t.Context(), data)
	require.NoError(t, err)
	for _, reader := range []string{"acme/demo", "other/demo"} { // the other one imported it
		require.Contains(t, call(t, set.in(store, reader), "read_result", `{"ref":"`+ref+`"}`), long(100), reader)
	}
}

func TestALargeResultIsStoredWithoutSecrets(t *testing.T) {
	const key, word = "sk-abcdefghijklmnopqrstuv", "hunter2-hunter2"
	for name, value := range map[string]any{
		"a text":    long(50_000) + " " + key + " " + long(50_000),
		"an object": map[string]string{"a": long(50_000), "apiKey": word, "z": key},
	} {
		t.Run(name, func(t *testing.T) {
			set, _ := producing(t, value)
			shown := call(t, set, "produce", "{}")
			ref, err := blobs.ParseRef("sha256/" + refPattern.FindStringSubmatch(shown)[1])
			require.NoError(t, err)
			stored, err := set.blobs.Get(t.Context(), ref)
			require.NoError(t, err)
			for _, text := range []string{shown, string(stored)} {
				require.NotContains(t, text, key)
				require.NotContains(t, text, word)
			}
			require.Contains(t, string(stored), "[removed]")
		})
	}
}

func TestResultsUpToTheMaximumAreShownAsAWhole(t *testing.T) {
	for size, isWhole := range map[int]bool{2048: true, 2049: false} {
		set, store := producing(t, strings.Repeat("a", size), tool.MaxResult(2048))
		shown := call(t, set, "produce", "{}")
		require.Equal(t, isWhole, shown == strings.Repeat("a", size))
		require.LessOrEqual(t, len(shown), 2048)
		stored := 0
		for _, err := range store.Names(t.Context(), "") {
			require.NoError(t, err)
			stored++
		}
		require.Equal(t, !isWhole, stored == 1)
	}
}

func TestTheSmallestMaximumHasRoomForTheHint(t *testing.T) {
	set, _ := producing(t, long(1<<20), tool.MaxResult(tool.MinMaxResult))
	shown := call(t, set, "produce", "{}")
	require.LessOrEqual(t, len(shown), tool.MinMaxResult)
	require.Regexp(t, refPattern, shown)
	require.True(t, strings.HasPrefix(shown, "line 0: aé€😀\n"))
}

func TestPartsOfAResult(t *testing.T) {
	set, _ := producing(t, strings.Repeat("€", 20_000))
	ref := refPattern.FindStringSubmatch(call(t, set, "produce", "{}"))[1]
	other, err := set.blobs.Put(t.Context(), []byte("a segment of a log"))
	require.NoError(t, err)
	for _, test := range []struct{ arguments, want string }{
		{`{"ref":"` + ref + `","offset":59997}`, "€\n\n[bytes 59997 to 60000 of 60000]"},
		{`{"ref":"sha256/` + ref + `","offset":59997}`, "€\n\n[bytes 59997 to 60000 of 60000]"},
		{`{"ref":"` + ref + `","offset":59998,"limit":1}`, "€\n\n[bytes 59997 to 60000 of 60000]"},
		{`{"ref":"` + ref + `","limit":6}`, "€€\n\n[bytes 0 to 6 of 60000]"},
		{`{"ref":"` + ref + `","limit":1}`, "€\n\n[bytes 0 to 3 of 60000]"},
	} {
		require.Equal(t, test.want, call(t, set, "read_result", test.arguments), test.arguments)
	}
	const unknown = "no result has this ref (copy it from the shortened result)"
	for _, test := range []struct{ arguments, want string }{
		{`{"ref":"` + ref + `","offset":60000}`, "offset 60000 is out of range (0 to 59999)"},
		{`{"ref":"` + ref + `","offset":-1}`, "offset -1 is out of range (0 to 59999)"},
		{`{"ref":"` + ref + `","limit":24001}`, "limit 24001 is out of range (1 to 24000)"},
		{`{"ref":"` + ref + `","limit":-1}`, "limit -1 is out of range (1 to 24000)"},
		{`{"ref":"` + strings.Repeat("0", 64) + `"}`, unknown},
		{`{"ref":"` + string(other) + `"}`, unknown},
		{`{"ref":"../contexts/other"}`, `ref: blob reference "sha256/../contexts/other": want sha256/ and 64 of 0-9 a-f (copy it from the shortened result)`},
		{`{}`, "invalid arguments: root: missing property 'ref'"},
	} {
		require.Equal(t, failed(test.want), set.Call(t.Context(), request("read_result", test.arguments)), test.arguments)
	}
}

func TestAResultThatCannotBeStoredIsStillShortened(t *testing.T) {
	set, store := producing(t, long(100_000))
	require.NoError(t, store.Close())
	shown := call(t, set, "produce", "{}")
	require.LessOrEqual(t, len(shown), tool.DefaultMaxResult)
	require.Contains(t, shown, "are left out: they were not stored.]")

	without := setOf(t, tool.Must(tool.New("produce", "Produce", func(context.Context, struct{}) (string, error) { return long(100_000), nil })))
	require.Contains(t, call(t, without, "produce", "{}"), "are left out: they were not stored.]")
	require.Equal(t, failed("this worker has no store for results"),
		without.Call(t.Context(), request("read_result", `{"ref":"`+strings.Repeat("0", 64)+`"}`)))
}
