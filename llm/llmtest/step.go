package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Step says how one request is answered. Its methods return a changed copy.
type Step struct {
	status int
	header http.Header
	// body holds the pieces in which the body is written; each is flushed.
	body []string
	end  end

	holdAfter int
	gate      *Gate
	pace      time.Duration
	isCut     bool // at cutAt
	cutAt     int

	// answer is what the step streams; the body is made of it when it is
	// needed. Nil for a step with a body of its own.
	answer *answer
	each   func(Request) Step
}

// end is how an answer ends, if not by its end.
type end int

const (
	endClean end = iota
	endStall
	endDrop
)

// answer is an answer as chat completion chunks.
type answer struct {
	tokens       []string
	finishReason string
	inputTokens  int
	outputTokens int
	isSilent     bool // about its usage
}

// Answer streams tokens, one chunk each, as OpenAI does: a chunk with the role,
// the tokens, the finish reason "stop", the usage, [DONE]. The usage is 7 input
// tokens and an output token per token.
func Answer(tokens ...string) Step {
	return Step{
		status: http.StatusOK,
		header: http.Header{"Content-Type": {"text/event-stream"}},
		answer: &answer{tokens: tokens, finishReason: "stop", inputTokens: 7, outputTokens: len(tokens)},
	}
}

// Status answers with a status and a body.
func Status(status int, body string) Step {
	return Step{
		status: status,
		header: http.Header{"Content-Type": {"application/json"}},
		body:   []string{body},
	}
}

// Error answers with a status and an error object like OpenAI's.
func Error(status int, code, message string) Step {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": code, "param": nil, "code": code}})
	return Status(status, string(body))
}

// Raw answers 200 with the pieces as they are, each flushed on its own, for
// streams that are not as they should be.
func Raw(contentType string, pieces ...string) Step {
	return Step{status: http.StatusOK, header: http.Header{"Content-Type": {contentType}}, body: pieces}
}

// Drop closes the connection before the first byte of an answer.
func Drop() Step { return Step{end: endDrop} }

// Stall takes the request and says nothing until the client is gone or the
// server is closed.
func Stall() Step { return Step{end: endStall} }

// Func answers all further requests by a function, which is called from many
// goroutines at once. It can only be the last step, and need not be used.
func Func(each func(Request) Step) Step { return Step{each: each} }

// Header sets a header of the answer.
func (s Step) Header(name, value string) Step {
	s.header = s.header.Clone()
	if s.header == nil {
		s.header = http.Header{}
	}
	s.header.Set(name, value)
	return s
}

// RetryAfter sets the header of that name: seconds or an HTTP date.
func (s Step) RetryAfter(value string) Step { return s.Header("Retry-After", value) }

// HoldAfter stops behind the n-th token of an answer, or the n-th piece of a
// body, until the test opens the gate. 0 means before the first byte.
func (s Step) HoldAfter(n int, gate *Gate) Step {
	s.holdAfter, s.gate = n, gate
	return s
}

// Every waits between the tokens of an answer, or the pieces of a body. It is
// meant for benchmarks and demonstrations; tests use [Step.HoldAfter].
func (s Step) Every(pace time.Duration) Step {
	s.pace = pace
	return s
}

// CutAt breaks the connection behind the n-th byte of the body.
func (s Step) CutAt(n int) Step {
	s.isCut, s.cutAt = true, n
	return s
}

// Finish sets the finish reason of an answer; "" sends none.
func (s Step) Finish(reason string) Step {
	return s.withAnswer(func(a *answer) { a.finishReason = reason })
}

// Usage sets the tokens that an answer is said to have used.
func (s Step) Usage(input, output int) Step {
	return s.withAnswer(func(a *answer) { a.inputTokens, a.outputTokens = input, output })
}

// NoUsage leaves the usage out, as some servers do.
func (s Step) NoUsage() Step {
	return s.withAnswer(func(a *answer) { a.isSilent = true })
}

func (s Step) withAnswer(change func(*answer)) Step {
	if s.answer == nil {
		panic("llmtest: only an Answer has a finish reason and usage")
	}
	copied := *s.answer
	change(&copied)
	s.answer = &copied
	return s
}

// Len is the number of bytes of the body.
func (s Step) Len() int { return len(strings.Join(s.pieces(), "")) }

// pieces is the body in the pieces in which it is flushed. In an answer the
// n-th token ends piece n-1.
func (s Step) pieces() []string {
	if s.answer == nil {
		return s.body
	}
	a := s.answer
	opening := Chunk(`{"role":"assistant","content":""}`, "")
	var pieces []string
	for _, token := range a.tokens {
		text, _ := json.Marshal(token)
		pieces = append(pieces, Chunk(fmt.Sprintf(`{"content":%s}`, text), ""))
	}
	closing := ""
	if a.finishReason != "" {
		closing += Chunk(`{}`, a.finishReason)
	}
	if !a.isSilent {
		closing += UsageChunk(a.inputTokens, a.outputTokens)
	}
	closing += Done
	if len(pieces) > 0 {
		pieces[0] = opening + pieces[0]
		return slices.Concat(pieces, []string{closing})
	}
	return []string{opening + closing}
}

// Done is the line that ends a stream.
const Done = "data: [DONE]\n\n"

// Chunk is an event with one choice: a delta, which is a JSON object, and a
// finish reason, which is null when it is "".
func Chunk(delta, finishReason string) string {
	reason := "null"
	if finishReason != "" {
		reason = fmt.Sprintf("%q", finishReason)
	}
	return fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[{"index":0,"delta":%s,"finish_reason":%s}],"usage":null}`+"\n\n",
		delta, reason)
}

// UsageChunk is the event with the usage and no choice.
func UsageChunk(input, output int) string {
	return fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n",
		input, output, input+output)
}
