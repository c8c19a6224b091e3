package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

const (
	// memoryLimit is GOMEMLIMIT of the process, which is soft; maxResident is the limit of the test, in bytes.
	memoryLimit = "GOMEMLIMIT=400MiB"
	maxResident = 800 << 20
	largeText   = 12_000_000 // bytes
)

// requireResident checks the peak of the resident size of a process, see proc_pid_status(5).
func requireResident(t *testing.T, p *process) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(status), "VmHWM:")
	require.True(t, ok)
	var kB int64
	_, err = fmt.Sscan(after, &kB)
	require.NoError(t, err)
	t.Logf("peak of the resident size: %d MiB", kB>>10)
	require.Less(t, kB<<10, int64(maxResident))
}

// stored stores an input without a client event id, and returns a reference to it.
func (w *world) stored(body event.Body) converter.RawValue {
	w.t.Helper()
	e, err := event.New(body).MarshalJSON()
	require.NoError(w.t, err)
	data, err := proto.Marshal(&commonpb.Payload{Data: e, Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}})
	require.NoError(w.t, err)
	ref, err := w.archive.Store().Put(w.ctx, data)
	require.NoError(w.t, err)
	return claim(string(ref), w.storeID)
}

// A signal of 200 bytes can refer to an input of megabytes that the store has once.
func TestCopiedReferencesDoNotFillTheMemoryOfAWorker(t *testing.T) {
	large(t)
	devServerOnly(t)
	file, err := builtWorker()
	require.NoError(t, err)
	const copies = 150
	for name, body := range map[string]event.Body{
		"note":    event.Note{Kind: event.NoteSystem, Content: strings.Repeat("n", largeText)},
		"message": event.UserMessage{Content: strings.Repeat("m", largeText), TriggersTurn: new(false)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, environment{temporal: startOwnServer(t).Address(), timeout: largeTimeout}, llmtest.Answer("Still here."))
			p := w.start(exec.Command(file, w.withAddresses([]string{"--cache-bytes", "67108864"})...),
				"OPENAI_BASE_URL="+w.model.URL, "OPENAI_MODEL=scripted", memoryLimit)
			c := w.open("copies")
			w.send(c, event.New(event.SetTimeout{TimeoutMs: 120_000}))
			reference := w.stored(body)
			for range copies {
				require.NoError(t, w.temporal.SignalWorkflow(w.ctx, wire.WorkflowID(c.Name()), "", wire.SignalEvent, reference))
			}
			last := w.say(c, "Still there?")
			require.Equal(t, event.TagLLMRequestCompleted, last[len(last)-1].Tag())
			recorded := countOf(w, c, body.Tag()) + countOf(w, c, event.TagInputRejected)
			if name == "message" {
				recorded-- // the question
			}
			require.Equal(t, copies, recorded)
			requireResident(t, p)
		})
	}
}

// Anyone who may publish on NATS can answer the question of a follower for the text so far.
func TestForgedPartsAndLongTranscriptsDoNotFillTheMemoryOfAGateway(t *testing.T) {
	large(t)
	file, err := built()
	require.NoError(t, err)
	w := newWorldOn(t, environment{timeout: largeTimeout}, llmtest.Answer("Shown."))
	w.worker()
	c := w.open("gateway-memory")
	const notes, viewers, parts = 24, 4, 500
	for i := range notes {
		n := event.New(event.Note{Kind: event.NoteSystem, Content: strings.Repeat("t", largeText)})
		n.ClientEventID = fmt.Sprintf("note-%d", i)
		_, err := c.Send(w.ctx, n)
		require.NoError(t, err)
	}
	w.await(c, func(e event.Event) bool { return e.ClientEventID == fmt.Sprintf("note-%d", notes-1) })

	forger, err := natsgo.Connect(w.on.nats)
	require.NoError(t, err)
	t.Cleanup(forger.Close)
	forged := make(chan error, 1)
	part := bytes.Repeat([]byte("p"), 900_000)
	_, err = forger.Subscribe("chronicle.default."+strings.ReplaceAll(c.Name(), ".", "=2E")+".ask", func(m *natsgo.Msg) {
		for i := 1; i <= parts; i++ {
			header := natsgo.Header{"Chronicle-Part": {fmt.Sprintf("forged %d %d", i, parts+1)}}
			if err := m.RespondMsg(&natsgo.Msg{Header: header, Data: part}); err != nil {
				forged <- err
				return
			}
		}
		select {
		case forged <- forger.Flush():
		default: // a later question
		}
	})
	require.NoError(t, err)
	require.NoError(t, forger.Flush())

	address := freeAddress(t)
	p := w.start(exec.Command(file, w.withAddresses([]string{"serve", "--listen", address, "--rate", "-1"})...), memoryLimit)
	url := "http://" + address
	w.eventually(func() bool {
		response, err := http.Get(url + "/readyz")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	b := &browser{w: w, url: url + "/contexts/" + c.Name()}
	b.view("", nil)
	select {
	case err := <-forged:
		require.NoError(t, err)
	case <-w.ctx.Done():
		t.Fatal("the gateway did not ask for the text so far")
	}
	var reading sync.WaitGroup
	for range viewers {
		reading.Go(func() {
			response, err := http.Get(b.url + "/transcript")
			if !assert.NoError(t, err) {
				return
			}
			defer response.Body.Close()
			n, err := io.Copy(io.Discard, response.Body)
			assert.NoError(t, err)
			assert.Greater(t, n, int64(notes*largeText))
		})
	}
	reading.Wait()
	b.say("Show it", "one")
	w.await(c, func(e event.Event) bool { return e.Tag() == event.TagLLMRequestCompleted })
	w.eventually(func() bool {
		status, transcript := b.do(http.MethodGet, b.url+"/transcript", "")
		return status == http.StatusOK && strings.Contains(transcript, "Shown.")
	})
	requireResident(t, p)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
