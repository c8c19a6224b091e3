package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const hello = `{"_tag":"UserMessage","content":"Hello"}` + "\n"

func TestScriptPrintsNewEvents(t *testing.T) {
	f := newFake(t, answered("demo:r0001", 2, "Hi"))
	f.recordBodies(event.SessionStarted{})
	got := starter(t, f, hello, "script", "-n", "demo")
	require.Zero(t, got.code, got.errOut)
	require.Equal(t, []event.Tag{
		event.TagUserMessage, event.TagLLMRequestStarted, event.TagAssistantMessage, event.TagLLMRequestCompleted,
	}, got.tags(t))
}

func TestScriptPrintsDeltasAndResets(t *testing.T) {
	f := newFake(t, []event.Body{
		event.TextDelta{RequestID: "demo:r0001", Attempt: 2, Delta: "Hi", Reset: true},
		event.LLMRequestCompleted{RequestID: "demo:r0001"},
	})
	got := starter(t, f, hello, "script", "-n", "demo", "--deltas")
	require.Zero(t, got.code, got.errOut)
	require.Equal(t, []event.Tag{event.TagUserMessage, event.TagTextDelta, event.TagLLMRequestCompleted}, got.tags(t))
	require.Contains(t, got.out, `"reset":true`)
}

func TestScriptWaitsForTheRunningAnswer(t *testing.T) {
	f := newFake(t, []event.Body{})
	f.answering = true
	asked := 0
	f.onState = func() {
		if asked++; asked == 2 {
			f.answering = false
			return
		}
		f.recordBodies(event.LLMRequestCompleted{RequestID: "demo:r0001"})
	}
	got := starter(t, f, hello, "script", "-n", "demo")
	require.Zero(t, got.code, got.errOut)
	require.Equal(t, []event.Tag{event.TagUserMessage, event.TagLLMRequestCompleted}, got.tags(t))
	require.Equal(t, 2, asked)
}

func TestScriptSendsAnArrayAsOneInput(t *testing.T) {
	f := newFake(t, []event.Body{}, []event.Body{event.InputRejected{Reason: "no"}}, []event.Body{})
	array := `[{"_tag":"SetTimeout","timeoutMs":5},{"_tag":"SystemPrompt","content":"x"}]` + "\n"
	got := starter(t, f, array+array+hello, "script", "-n", "demo")
	require.Zero(t, got.code, got.errOut)
	require.Len(t, f.inputs, 3)
	require.Equal(t, []event.Tag{
		event.TagSetTimeout, event.TagSystemPrompt, event.TagInputRejected, event.TagUserMessage,
	}, got.tags(t))
}

func TestScriptReportsInvalidLinesAndSendsTheOthers(t *testing.T) {
	f := newFake(t, []event.Body{}, []event.Body{})
	stdin := hello + "nonsense\n\n" +
		`{"_tag":"SetTools","tools":["grep"],"aprove":["*"]}` + "\n" +
		`[{"_tag":"UserMessage","content":"not sent"},{"_tag":"SessionEnded","reason":"x"}]` + "\n" +
		strings.TrimSpace(hello)
	got := starter(t, f, stdin, "script", "-n", "demo")
	require.Equal(t, exit.Failure, got.code)
	require.Len(t, f.inputs, 2)
	require.Len(t, got.tags(t), 2)
	require.Contains(t, got.errOut, "line 2: not sent: ")
	require.Contains(t, got.errOut, `line 4: not sent: SetToolsEvent: unknown field "aprove" (did you mean "approve"?)`)
	require.Contains(t, got.errOut, "line 5: not sent: event 2 of 2: ")
	require.Contains(t, got.errOut, "script: 3 of 6 lines not sent")
}

func TestALineOfStandardInputIsBounded(t *testing.T) {
	want := fmt.Sprintf("starter: standard input: line 2: line exceeds %d bytes\n", wire.MaxStoredBytes)
	long := func() io.Reader { return io.MultiReader(strings.NewReader(hello), endless{}) }
	t.Run("script", func(t *testing.T) {
		f := newFake(t)
		f.take = func([]event.Event) error { return nil }
		got := starterWith(t, t.Context(), &fakeClient{context: f}, long(), "script", "-n", "demo")
		require.Equal(t, exit.Failure, got.code)
		require.Equal(t, want, got.errOut)
	})
	t.Run("chat", func(t *testing.T) {
		f := newFake(t, answered("demo:r0001", 1, "Hi"))
		got := starterWith(t, t.Context(), &fakeClient{context: f}, long(), "chat", "-n", "demo")
		require.Equal(t, exit.Failure, got.code)
		require.Contains(t, got.errOut, want)
	})
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestScriptWithoutInputEndsAtOnce(t *testing.T) {
	f := newFake(t)
	f.missing = true
	require.Equal(t, outcome{}, starter(t, f, "", "script", "-n", "demo"))
}

func TestScriptWaitsUntilTheDeliveryIsKnown(t *testing.T) {
	for unavailable, note := range map[error]string{
		client.ErrNoWorker:   "no worker responds; waiting for one\n",
		blobs.ErrUnavailable: "the blob store is unavailable; waiting for it\n",
	} {
		f := newFake(t)
		f.err = unavailable
		asked := 0
		f.onState = func() {
			if asked++; asked == 3 {
				f.err = nil
			}
		}
		var out, errOut strings.Builder
		o := scriptOptions{
			app:           &app{streams: streams{in: strings.NewReader(""), out: &out, err: &errOut}},
			name:          "demo",
			retryInterval: time.Nanosecond, queryInterval: time.Hour,
		}
		s := script{scriptOptions: o, to: f, inputEnded: true}
		done, err := s.isDone(t.Context())
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, note, errOut.String())
	}
}

func TestScriptPrintsEachEventAtOnce(t *testing.T) {
	stdin, write := io.Pipe()
	read, stdout := io.Pipe()
	f := newFake(t, []event.Body{}, []event.Body{})
	code := make(chan int, 1)
	go func() {
		a := &app{streams: streams{in: stdin, out: stdout, err: io.Discard}, dial: dialFake(f)}
		code <- execute(t.Context(), a, []string{"script", "-n", "demo"})
	}()
	buffer := make([]byte, 4096)
	for range 2 {
		_, err := io.WriteString(write, hello)
		require.NoError(t, err)
		n, err := read.Read(buffer)
		require.NoError(t, err)
		require.Equal(t, byte('\n'), buffer[n-1])
	}
	require.NoError(t, write.Close())
	require.Zero(t, <-code)
}

// runScriptOn runs a script that checks the outcome of its lines at once.
func runScriptOn(t *testing.T, f *fakeContext, stdin string) (out outcome, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	o := scriptOptions{
		app: &app{
			streams: streams{in: strings.NewReader(stdin), out: &stdout, err: &stderr},
			dial:    dialFake(f),
		},
		name: "demo", retryInterval: time.Nanosecond, queryInterval: time.Millisecond,
	}
	err = runScript(t.Context(), o)
	return outcome{out: stdout.String(), errOut: stderr.String()}, err
}

func TestScriptPrintsRecordedEventsForRepeatedLines(t *testing.T) {
	const (
		message  = `{"_tag":"UserMessage","clientEventId":"a","content":"Hello"}`
		settings = `{"_tag":"SetTimeout","clientEventId":"b","timeoutMs":5}`
	)
	for name, test := range map[string]struct {
		lines   []string
		replies int // to new lines
		want    []event.Tag
	}{
		"a message":         {[]string{message}, 0, []event.Tag{event.TagUserMessage}},
		"settings":          {[]string{settings}, 0, []event.Tag{event.TagSetTimeout}},
		"an array":          {[]string{"[" + message + "," + settings + "]"}, 0, []event.Tag{event.TagUserMessage, event.TagSetTimeout}},
		"twice":             {[]string{message, message}, 0, []event.Tag{event.TagUserMessage, event.TagUserMessage}},
		"before a new line": {[]string{message, strings.TrimSpace(hello)}, 1, []event.Tag{event.TagUserMessage, event.TagUserMessage}},
		"after a new line":  {[]string{strings.TrimSpace(hello), settings}, 1, []event.Tag{event.TagUserMessage, event.TagSetTimeout}},
	} {
		for way, signals := range map[string]bool{"answered by a worker": false, "taken by a signal": true} {
			t.Run(name+" "+way, func(t *testing.T) {
				f := newFake(t)
				for _, line := range []string{message, settings} {
					events, err := event.DecodeInput([]byte(line))
					require.NoError(t, err)
					f.Record(events...)
				}
				for range test.replies {
					f.replies = append(f.replies, []event.Body{})
				}
				f.signals = signals
				got, err := runScriptOn(t, f, strings.Join(test.lines, "\n")+"\n")
				require.NoError(t, err, got.errOut)
				require.ElementsMatch(t, test.want, got.tags(t))
				require.Len(t, f.inputs, test.replies)
			})
		}
	}
}

func TestScriptDeduplicatesWithinOneRun(t *testing.T) {
	const line = `{"_tag":"UserMessage","clientEventId":"a","content":"Hello"}` + "\n"
	for way, signals := range map[string]bool{"answered by a worker": false, "taken by a signal": true} {
		t.Run(way, func(t *testing.T) {
			f := newFake(t, []event.Body{})
			f.signals = signals
			got, err := runScriptOn(t, f, line+line)
			require.NoError(t, err)
			require.Contains(t, got.tags(t), event.TagUserMessage)
			require.Len(t, f.inputs, 1)
		})
	}
}

func TestScriptSendsARejectedLineAgain(t *testing.T) {
	const line = `{"_tag":"UserMessage","clientEventId":"a","content":"Hello"}` + "\n"
	f := newFake(t, []event.Body{event.InputRejected{Reason: "busy"}}, []event.Body{event.InputRejected{Reason: "busy"}}, []event.Body{})
	got, err := runScriptOn(t, f, line+line+line)
	require.NoError(t, err)
	require.Equal(t, []event.Tag{event.TagInputRejected, event.TagInputRejected, event.TagUserMessage}, got.tags(t))
}

func TestScriptEndsWhenTheRunWithALineIsTerminated(t *testing.T) {
	f := newFake(t)
	f.take = func([]event.Event) error { return nil }
	f.loses = true
	_, err := runScriptOn(t, f, hello)
	require.ErrorIs(t, err, client.ErrLost)
	require.ErrorContains(t, err, "line 1: ")
}

func TestScriptDeduplicatesBeyondTheLimitOfTheContext(t *testing.T) {
	const (
		old   = `{"_tag":"UserMessage","clientEventId":"a","content":"Hello"}`
		fresh = `{"_tag":"SetTimeout","clientEventId":"b","timeoutMs":5}`
		other = `{"_tag":"UserMessage","content":"Hello"}`
	)
	for name, test := range map[string]struct {
		lines []string
		sent  int
		want  []event.Tag
	}{
		"alone":       {[]string{old}, 0, []event.Tag{event.TagUserMessage}},
		"in an array": {[]string{"[" + old + "," + fresh + "]"}, 1, []event.Tag{event.TagUserMessage, event.TagSetTimeout}},
		"sent by the script": {[]string{fresh, other, other, other, fresh}, 4,
			[]event.Tag{event.TagSetTimeout, event.TagUserMessage, event.TagUserMessage, event.TagUserMessage}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.recent = 2
			events, err := event.DecodeInput([]byte(old))
			require.NoError(t, err)
			f.Record(events...)
			f.recordBodies(event.Note{}, event.Note{}, event.Note{})
			for range test.sent {
				f.replies = append(f.replies, []event.Body{})
			}
			got, err := runScriptOn(t, f, strings.Join(test.lines, "\n")+"\n")
			require.NoError(t, err, got.errOut)
			require.Subset(t, test.want, got.tags(t))
			require.Subset(t, got.tags(t), test.want)
			recorded := map[string]int{}
			for _, e := range f.all() {
				recorded[e.ClientEventID]++
			}
			require.Equal(t, 1, recorded["a"])
			require.Len(t, f.inputs, test.sent)
		})
	}
}

func TestScriptAsksAgainIfADeliveryIsUnknown(t *testing.T) {
	broken := errors.New("broken")
	for err, want := range map[error]error{
		client.ErrNoWorker: nil, client.ErrUnreachable: nil, blobs.ErrUnavailable: nil, broken: broken,
	} {
		f := newFake(t)
		f.err = err
		s := script{scriptOptions: scriptOptions{app: &app{}, name: "demo"}, to: f, pending: []sentInput{{clientIDs: []string{"line-1"}}}}
		require.Equal(t, want, s.queryDelivery(t.Context()), err)
	}
}
