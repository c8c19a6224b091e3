package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/internal/ordering"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// serveModel runs an OpenAI-compatible server. It answers the newest message of a conversation as the
// message specifies, see [Message] and [HostileAnswers].
func serveModel(r *role) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	m := &model{role: r, requests: map[string]int{}, rand: rand.New(rand.NewPCG(r.Seed, 0))}
	r.ready(fmt.Sprintf("http://%s/v1", listener.Addr()))
	return http.Serve(listener, http.HandlerFunc(m.serve))
}

type model struct {
	*role
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
	body, err := io.ReadAll(r.Body)
	var request openai.ChatCompletionRequest
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t, err := turnOf(request.Messages)
	if m.Checked {
		for _, violation := range ordering.Check("openai", body) {
			m.report(Observation{Kind: Invalid, Key: t.Key, At: arrived, Value: violation.String()})
		}
	}
	if err != nil {
		hostileAnswerTo(request.Messages).serve(w, r)
		return
	}
	m.report(Observation{Kind: Requested, Key: m.count(t.Key), At: arrived})
	a := t.answer(len(request.Tools) > 0 && request.ToolChoice != "none")
	cut := a.len()
	if m.chance() < m.Faults {
		var served bool
		if cut, served = m.fault(w, r, a.len()); served {
			return
		}
	}
	if err := a.stream(r.Context(), w, t.Every, cut); err != nil {
		if r.Context().Err() != nil {
			m.report(Observation{Kind: Aborted, Key: t.Key, At: time.Now()})
		}
		// Resets the connection instead of ending the answer.
		panic(http.ErrAbortHandler)
	}
}

// turn is the newest message, and the number of answers with tool calls after it.
type turn struct {
	Message
	steps int
}

func turnOf(messages []openai.ChatCompletionMessage) (t turn, err error) {
	for _, message := range slices.Backward(messages) {
		if message.Role == openai.ChatMessageRoleUser {
			break
		}
		if len(message.ToolCalls) > 0 {
			t.steps++
		}
	}
	t.Message, err = ParseMessage(newestText(messages))
	return t, err
}

// newestText is that of the newest message of the user.
func newestText(messages []openai.ChatCompletionMessage) string {
	for _, message := range slices.Backward(messages) {
		switch {
		case message.Role != openai.ChatMessageRoleUser:
		case len(message.MultiContent) > 0:
			return message.MultiContent[0].Text // files follow the text
		default:
			return message.Content
		}
	}
	return ""
}

// answer is the last answer, or one token and the calls of a step.
type answer struct {
	key    string
	tokens int
	calls  []Call
}

func (t turn) answer(mayCall bool) answer {
	if !mayCall || t.steps >= len(t.Script.Steps) {
		return answer{t.Key, t.Tokens, nil}
	}
	return answer{t.Key, 1, t.Script.Steps[t.steps]}
}

func (a answer) len() int { return a.tokens + len(a.calls) }

func (a answer) piece(i int) string {
	if i < a.tokens {
		return llmtest.Chunk(fmt.Sprintf(`{"content":%s}`, encode(token(a.key, i))), "")
	}
	c := a.calls[i-a.tokens]
	return llmtest.Chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]}`,
		i-a.tokens, encode(c.ID), encode(c.Name), encode(c.Arguments)), "")
}

func encode(text string) string {
	data, _ := json.Marshal(text) // a string always encodes
	return string(data)
}

// stream sends the answer. It fails after cut pieces if the answer has more.
func (a answer) stream(ctx context.Context, w http.ResponseWriter, every time.Duration, cut int) error {
	w.Header().Set("Content-Type", "text/event-stream")
	controller := http.NewResponseController(w)
	for i := range a.len() {
		if i == cut {
			return errCut
		}
		if i > 0 && !pause.For(ctx, every) {
			return ctx.Err()
		}
		if _, err := io.WriteString(w, a.piece(i)); err != nil {
			return err
		}
		if err := controller.Flush(); err != nil {
			return err
		}
	}
	reason := "stop"
	if len(a.calls) > 0 {
		reason = "tool_calls"
	}
	_, err := io.WriteString(w, llmtest.Chunk(`{}`, reason)+llmtest.UsageChunk(InputTokens, a.len())+llmtest.Done)
	return err
}

// InputTokens is the input of each request in the usage that the model reports. The output is the
// number of tokens and calls.
const InputTokens = 7

// stall is how long the model is silent before it resets the connection.
const stall = 2 * time.Second

// fault injects a random fault. If it rejects the request, served is true. Otherwise, cut is the number
// of pieces after which the connection is reset: 0 after the pause stall, or a random number.
func (m *model) fault(w http.ResponseWriter, r *http.Request, pieces int) (cut int, served bool) {
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
		return int(m.chance() * float64(pieces)), false
	}
}

var errCut = errors.New("the answer is cut off")
