package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

const (
	// memoryLimit is GOMEMLIMIT of the process, which is soft; maxResident and maxIdle are limits of the test, in bytes.
	memoryLimit = "GOMEMLIMIT=400MiB"
	// frequentGC makes the resident size of an idle process show what is in use: otherwise it collects every two minutes.
	frequentGC  = "GOGC=50"
	maxResident = 700 << 20
	maxIdle     = 300 << 20
	largeText   = 12_000_000
)

// resident returns a field of proc_pid_status(5), VmHWM or VmRSS, in bytes.
func (p *process) resident(field string) int64 {
	p.w.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	require.NoError(p.w.t, err)
	_, after, ok := strings.Cut(string(status), field+":")
	require.True(p.w.t, ok)
	var kB int64
	_, err = fmt.Sscan(after, &kB)
	require.NoError(p.w.t, err)
	return kB << 10
}

func (p *process) requireResident() {
	p.w.t.Helper()
	peak := p.resident("VmHWM")
	p.w.t.Logf("peak of the resident size: %d MiB", peak>>20)
	require.Less(p.w.t, peak, int64(maxResident))
}

// stored stores an input of a context without a client event id, and returns a reference to it.
func (w *world) stored(c *client.Context, body event.Body) converter.RawValue {
	w.t.Helper()
	e, err := event.New(body).MarshalJSON()
	require.NoError(w.t, err)
	data, err := proto.Marshal(&commonpb.Payload{Data: e, Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}})
	require.NoError(w.t, err)
	ref, err := w.archive.Blobs(c.Name()).Put(w.ctx, data)
	require.NoError(w.t, err)
	return claim(c.Name(), string(ref), w.storeID)
}

// A signal of 200 bytes can refer to an input of megabytes that the store has once.
func TestCopiedReferencesDoNotFillTheMemoryOfAWorker_Long(t *testing.T) {
	long(t)
	onlyHeavy(t)
	devServerOnly(t)
	file, err := builtWorker()
	require.NoError(t, err)
	w := newWorldOn(t, environment{temporal: startOwnServer(t).Address()}, llmtest.Func(echo))
	p := w.start(exec.Command(file, w.withAddresses([]string{"--cached-contexts", "8"})...),
		"OPENAI_BASE_URL="+w.model.URL, "OPENAI_MODEL=scripted", memoryLimit, frequentGC)
	note := event.Note{Kind: event.NoteSystem, Content: strings.Repeat("n", largeText)}
	message := event.UserMessage{Content: strings.Repeat("m", largeText), TriggersTurn: new(false)}
	const room = 5 // messages, see reducer.MaxMessageBytes
	for _, test := range []struct {
		name             string
		body             event.Body
		contexts, copies int
		recorded         int // in a context; others are rejected
	}{
		{"contexts", note, 16, 1, 1},
		{"notes", note, 1, 12, 12},
		{"messages", message, 1, 10, room},
	} {
		contexts := make([]*client.Context, test.contexts)
		for i := range contexts {
			contexts[i] = w.open(fmt.Sprintf("%s-%d", test.name, i))
			w.send(contexts[i], event.New(event.SetTimeout{TimeoutMs: 120_000}))
			reference := w.stored(contexts[i], test.body)
			for range test.copies {
				require.NoError(t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(contexts[i].Name()), "", wire.SignalEvent, reference))
			}
		}
		for _, c := range contexts {
			recorded, rejected := 0, 0
			w.await(c, func(e event.Event) bool {
				switch e.Tag() {
				case test.body.Tag():
					recorded++
				case event.TagInputRejected:
					rejected++
				}
				return recorded+rejected == test.copies
			})
			require.Equal(t, test.recorded, recorded, test.name)
			// The next workflow task has the record of the large input in its history.
			w.send(c, event.New(event.SetTimeout{TimeoutMs: 60_000}))
		}
		p.requireResident()
		// The runtime returns memory in the background.
		w.eventually(func() bool { return p.resident("VmRSS") < maxIdle })
		last := w.say(contexts[0], "Still there?")
		require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
		p.requireResident()
	}
}
