package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// serveModel runs an OpenAI-compatible server until its orders end. It answers the last
// message of a conversation as the message specifies, see [Message].
func serveModel(s *self) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	model := &model{self: s, requests: map[string]int{}, rand: rand.New(rand.NewPCG(s.Seed, 0))}
	server := &http.Server{Handler: http.HandlerFunc(model.serve)}
	go func() { _ = server.Serve(listener) }()
	s.report(Observation{Kind: Ready, At: time.Now(), Value: fmt.Sprintf("http://%s/v1", listener.Addr())})
	s.next()
	return server.Close()
}

type model struct {
	*self
	mu       sync.Mutex // guards the fields below
	rand     *rand.Rand
	requests map[string]int // by key
}

func (m *model) count(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[key]++
	return RepeatKey(key, m.requests[key])
}

// RepeatKey is the key of the [Requested] observation of the n-th request for a message, from 1.
func RepeatKey(key string, n int) string {
	if n == 1 {
		return key
	}
	return fmt.Sprintf("%s#%d", key, n)
}

// chance is reproducible by seed.
func (m *model) chance() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rand.Float64()
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	var request openai.ChatCompletionRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "invalid chat completion request (at least one message)", http.StatusBadRequest)
		return
	}
	last := request.Messages[len(request.Messages)-1]
	if len(last.MultiContent) > 0 {
		last.Content = last.MultiContent[0].Text // files follow the text
	}
	message, err := ParseMessage(last.Content)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.report(Observation{Kind: Requested, Key: m.count(message.Key), At: arrived})
	cut := message.Tokens
	if m.chance() < m.Faults {
		var served bool
		if cut, served = m.fault(w, r, message); served {
			return
		}
	}
	if err := answer(r.Context(), w, message, cut); err != nil {
		if r.Context().Err() != nil {
			m.report(Observation{Kind: Aborted, Key: message.Key, At: time.Now()})
		}
		// Resets the connection instead of ending the answer.
		panic(http.ErrAbortHandler)
	}
}

// stall is how long the model is silent before it resets the connection.
const stall = 2 * time.Second

// fault injects a random fault: it rejects the request, or resets the connection after a
// pause or after cut tokens.
func (m *model) fault(w http.ResponseWriter, r *http.Request, message Message) (cut int, served bool) {
	switch int(4 * m.chance()) {
	case 0:
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"error":{"message":"slow down","type":"rate_limit_exceeded","code":"rate_limit_exceeded"}}`, http.StatusTooManyRequests)
		return 0, true
	case 1:
		http.Error(w, `{"error":{"message":"something broke","type":"server_error","code":null}}`, http.StatusInternalServerError)
		return 0, true
	case 2:
		pause.For(r.Context(), stall)
		return 0, false
	default:
		return int(m.chance() * float64(message.Tokens)), false
	}
}

var errCut = fmt.Errorf("the answer is cut off")

// answer fails after cut tokens.
func answer(ctx context.Context, w http.ResponseWriter, message Message, cut int) error {
	w.Header().Set("Content-Type", "text/event-stream")
	controller := http.NewResponseController(w)
	for i := range message.Tokens {
		if i == cut {
			return errCut
		}
		if i > 0 && !pause.For(ctx, message.Every) {
			return ctx.Err()
		}
		text, _ := json.Marshal(token(message.Key, i)) // a string always encodes
		if _, err := io.WriteString(w, llmtest.Chunk(fmt.Sprintf(`{"content":%s}`, text), "")); err != nil {
			return err
		}
		if err := controller.Flush(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, llmtest.Chunk(`{}`, "stop")+llmtest.UsageChunk(7, message.Tokens)+llmtest.Done)
	return err
}
