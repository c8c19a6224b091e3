package aisdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest/golden"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
	"github.com/seed-9ed7edd4/chronicle/internal/npmtest"
)

// page reads one answer with an SDK. When the answer waits for the page, the response ends, and the next change of the
// answer begins another one.
type page struct {
	reply
	Version   int       `json:"version"`
	Responses [][]chunk `json:"responses"`
	isClosed  bool      // the newest response ended
}

func newPage(version int, answer string, log []event.Event) *page {
	p := &page{Version: version}
	p.id, p.writer.version = answer, version
	p.waiting = func(calls []string) []string {
		return slices.DeleteFunc(calls, func(id string) bool { return needsApproval(p.thread.Last, id, log) })
	}
	return p
}

// needsApproval reports whether a call is yet to be approved.
func needsApproval(last int, call string, log []event.Event) bool {
	return slices.ContainsFunc(log, func(e event.Event) bool {
		body, ok := e.Body.(event.ApprovalRequested)
		return ok && body.ToolCallID == call && event.Counter(e.ID) > last
	})
}

func (p *page) read(item gateway.Item) []chunk {
	p.apply(item)
	m := p.message()
	if m == nil {
		return nil
	}
	if p.isClosed {
		if slices.EqualFunc(p.writer.has, m.Parts, func(a, b part) bool {
			return a.State == b.State && bytes.Equal(a.Output, b.Output) && a.ErrorText == b.ErrorText
		}) {
			return nil
		}
		known := p.writer.has
		p.writer = writer{version: p.Version}
		for i := range known {
			known[i].open = ""
		}
		p.writer.has = known
	}
	chunks, isLast := p.flush()
	if p.isClosed || len(p.Responses) == 0 {
		p.Responses = append(p.Responses, nil)
	}
	newest := &p.Responses[len(p.Responses)-1]
	*newest = append(*newest, chunks...)
	p.isClosed = isLast
	return chunks
}

// A story has a script of events of a context demo, one a line, and in "want" the chunks that a page with version 7 of the
// SDK receives for each.
func TestStories(t *testing.T) {
	golden.Stories(t, "testdata/*.txtar", func(t *testing.T, script string) string {
		var out strings.Builder
		log := logOf(t, script)
		var pages []*page
		for _, id := range answersOf(log) {
			pages = append(pages, newPage(7, id, log))
		}
		for _, item := range itemsOf(log) {
			line, err := item.Event.MarshalJSON()
			require.NoError(t, err)
			fmt.Fprintf(&out, "> %s\n", envelope.ReplaceAll(line, nil))
			for _, p := range pages {
				for _, c := range p.read(item) {
					fmt.Fprintf(&out, "  %s\n", encode(t, c))
				}
			}
		}
		return out.String()
	})
}

var envelope = regexp.MustCompile(`"(timestamp|contextName|parentEventId)":"[^"]*",`)

// TestTheSDKBuildsTheMessages lets both versions of the SDK build the answers of the stories here and of the reducer, and of
// random logs, and compares them with those that a page loads.
func TestTheSDKBuildsTheMessages(t *testing.T) {
	logs := map[string][]event.Event{}
	for _, pattern := range []string{"testdata/*.txtar", "../../reducer/testdata/session/*.txtar"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			story, err := txtar.ParseFile(file)
			require.NoError(t, err)
			if logs[file] = recordedIn(t, string(story.Files[1].Data)); strings.HasPrefix(pattern, "testdata") {
				logs[file] = logOf(t, string(story.Files[0].Data))
			}
		}
	}
	for seed := range 30 {
		logs[fmt.Sprintf("random log %d", seed)] = eventtest.Log("demo").Example(seed)
	}
	var pages []*page
	var names []string
	for name, log := range logs {
		for _, id := range answersOf(log) {
			for _, version := range []int{6, 7} {
				p := newPage(version, id, log)
				for _, item := range itemsOf(log) {
					p.read(item)
				}
				pages, names = append(pages, p), append(names, fmt.Sprintf("%s %s version %d", name, id, version))
			}
		}
	}
	require.Greater(t, len(pages), 100)
	for i, built := range check(t, pages) {
		p := pages[i]
		failures := []string{}
		for _, responses := range p.Responses {
			for _, c := range responses {
				if c["type"] == "error" {
					failures = append(failures, c["errorText"].(string))
				}
			}
		}
		require.Equal(t, failures, built.Errors, names[i])
		require.Equal(t, p.id, built.Message.ID, names[i])
		want := slices.Clone(p.message().Parts)
		if n := len(want); n > len(built.Message.Parts) && want[n-1].Type == typeStep {
			want = want[:n-1] // the SDK does not show a step before its content
		}
		if p.Version == 7 {
			require.Empty(t, built.Invalid, names[i])
		} else {
			want = asVersion6(want)
			built.Message.Parts = asVersion6(slices.DeleteFunc(built.Message.Parts, func(p part) bool { return p.Text == discarded }))
		}
		require.JSONEq(t, encode(t, want), encode(t, built.Message.Parts), names[i])
	}
}

// asVersion6 removes what version 6 does not learn: the decisions of others.
func asVersion6(parts []part) []part {
	for i, p := range parts {
		if p.Approval != nil {
			parts[i].Approval = &approval{ID: p.Approval.ID}
			if p.State == stateDecided {
				parts[i].State = stateAsked
			}
		}
	}
	return parts
}

// discarded replaces the text of a part that is marked as discarded.
const discarded = "(discarded)"

type builtMessage struct {
	Message message  `json:"message"`
	Errors  []string `json:"errors"`
	Invalid string   `json:"invalid"` // why the SDK does not accept the message
}

func check(t *testing.T, pages []*page) (built []builtMessage) {
	t.Helper()
	node := exec.Command("node", "check.mjs")
	node.Dir = npmtest.Folder(t, "../..", "aisdk", "../../test/clients/aisdk")
	var in bytes.Buffer
	for _, p := range pages {
		in.WriteString(encode(t, p) + "\n")
	}
	node.Stdin, node.Stderr = &in, os.Stderr
	out, err := node.Output()
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(out))
	for range pages {
		var b builtMessage
		var marks struct {
			Message struct {
				Parts []struct {
					ProviderMetadata map[string]struct{ Discarded bool }
				}
			}
		}
		var line json.RawMessage
		require.NoError(t, decoder.Decode(&line))
		require.NoError(t, json.Unmarshal(line, &b))
		require.NoError(t, json.Unmarshal(line, &marks))
		for i, p := range marks.Message.Parts {
			if p.ProviderMetadata["chronicle"].Discarded {
				b.Message.Parts[i].Text = discarded
			}
		}
		built = append(built, b)
	}
	return built
}

func encode(t *testing.T, value any) string {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(value))
	return strings.TrimSpace(out.String())
}

func logOf(t *testing.T, script string) []event.Event {
	t.Helper()
	var log []event.Event
	recorded := 0
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var e event.Event
		require.NoError(t, e.UnmarshalJSON([]byte(line)), line)
		e.ContextName = "demo"
		if e.Tag().Class() != event.ClassEphemeral {
			recorded++
			e.ID, e.Timestamp = event.FormatID("demo", recorded), eventtest.Epoch.Add(time.Duration(recorded)*time.Second)
		}
		log = append(log, e)
	}
	return log
}

var recordLine = regexp.MustCompile(`(?m)^  record (\S+) (\S+) (\{.*\})$`)

// recordedIn returns the log of a story of the reducer.
func recordedIn(t *testing.T, printed string) (log []event.Event) {
	t.Helper()
	for _, match := range recordLine.FindAllStringSubmatch(printed, -1) {
		var e event.Event
		text := fmt.Sprintf(`{"_tag":%q,"id":%q,%s`, match[2], match[1], strings.TrimPrefix(match[3], "{"))
		require.NoError(t, e.UnmarshalJSON([]byte(strings.Replace(text, ",}", "}", 1))), text)
		log = append(log, e)
	}
	return log
}

func answersOf(log []event.Event) (ids []string) {
	var folded thread.Thread
	for _, item := range itemsOf(log) {
		folded.Apply(item)
	}
	for _, m := range messagesOf(&folded) {
		if m.request != nil {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// itemsOf adds the offsets of deltas.
func itemsOf(log []event.Event) (items []gateway.Item) {
	text, reasoning := 0, 0
	for _, e := range log {
		item := gateway.Item{Event: e}
		offset := &text
		d, ok := e.Body.(event.TextDelta)
		if body, isReasoning := e.Body.(event.ReasoningDelta); isReasoning {
			d, ok, offset = event.TextDelta(body), true, &reasoning
		}
		if _, isStart := e.Body.(event.LLMRequestStarted); isStart || d.Reset {
			text, reasoning = 0, 0
		}
		if ok {
			item.Offset = *offset
			*offset += len(d.Delta)
		}
		items = append(items, item)
	}
	return items
}

func TestAResponseEndsWithoutAnAnswer(t *testing.T) {
	message := event.New(event.UserMessage{Content: "Hi"})
	message.ID, message.ClientEventID = "demo:0002", "m1"
	rejected := event.New(event.InputRejected{Reason: "busy"})
	rejected.ID, rejected.ClientEventID = "demo:0002", "m1"
	ended := event.New(event.SessionEnded{Reason: "closed"})
	ended.ID = "demo:0003"
	for want, log := range map[string][]event.Event{
		"busy":                                {rejected},
		"the session ended before the answer": {message, ended},
	} {
		r := &reply{sent: []string{"m1"}}
		for i, e := range log {
			r.apply(gateway.Item{Event: e})
			chunks, isLast := r.flush()
			require.Equal(t, i == len(log)-1, isLast)
			if isLast {
				require.Equal(t, []chunk{{"type": "error", "errorText": want}}, chunks)
			} else {
				require.Empty(t, chunks)
			}
		}
	}
}

// BenchmarkDelta is the cost of a delta in the middle of an answer of 4 KB.
func BenchmarkDelta(b *testing.B) {
	start := []event.Body{
		event.UserMessage{Content: "Hi"},
		event.LLMRequestStarted{RequestID: "demo:r0001", ThroughEventID: "demo:0001", Attempt: 1},
		event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Delta: strings.Repeat("x", 2048)},
	}
	delta := event.New(event.TextDelta{RequestID: "demo:r0001", Attempt: 1, Delta: "word "})
	const deltas = 400
	for b.Loop() {
		r := &reply{id: "demo:r0001", writer: writer{version: 7}}
		for i, body := range start {
			e := event.New(body)
			e.ID = event.FormatID("demo", i+1)
			r.apply(gateway.Item{Event: e})
		}
		r.flush()
		for i := range deltas {
			r.apply(gateway.Item{Event: delta, Offset: 2048 + 5*i})
			chunks, _ := r.flush()
			_ = frames(chunks)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas), "ns/delta")
}
