package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Step is the response to one request. Its methods return a modified copy.
type Step struct {
	status int
	header http.Header
	body   []string // flushed one by one
	end    end

	gates map[int]*Gate // by the number of tokens or pieces before them
	pace  time.Duration
	isCut bool // at cutAt
	cutAt int

	answer *answer // streamed as chunks; nil: the step has its own body
	each   func(Request) Step
	checks []func(Request) error // problems of the request
}

// Call is a tool call of an answer.
type Call struct {
	ID, Name  string // ID may be empty, as with some servers
	Arguments string // usually JSON, but any text that a model writes
}

type end int

const (
	endClean end = iota
	endStall
	endDrop
)

type answer struct {
	thoughts     []string
	tokens       []string
	calls        []Call
	finishReason string
	inputTokens  int
	outputTokens int
	cachedTokens int
	isSilent     bool // reports no usage
}

// Answer streams tokens as OpenAI does: a chunk with the role, one chunk per token, the finish
// reason "stop", the usage (7 input tokens, one output token per token) and [DONE].
func Answer(tokens ...string) Step {
	return Step{
		status: http.StatusOK,
		header: http.Header{"Content-Type": {"text/event-stream"}},
		answer: &answer{tokens: tokens, finishReason: "stop", inputTokens: 7, outputTokens: len(tokens)},
	}
}

// Calls is an [Answer] without text that calls tools.
func Calls(calls ...Call) Step { return Answer().Calls(calls...) }

// Status responds with a status and a JSON body.
func Status(status int, body string) Step {
	return Step{
		status: status,
		header: http.Header{"Content-Type": {"application/json"}},
		body:   []string{body},
	}
}

// Error responds with a status and an OpenAI error object.
func Error(status int, code, message string) Step {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": code, "param": nil, "code": code}})
	return Status(status, string(body))
}

// Raw responds with status 200 and pieces, each flushed separately, for malformed streams.
func Raw(contentType string, pieces ...string) Step {
	return Step{status: http.StatusOK, header: http.Header{"Content-Type": {contentType}}, body: pieces}
}

// Drop closes the connection before the first byte of the response.
func Drop() Step { return Step{end: endDrop} }

// Stall sends nothing until the client disconnects or the server is closed.
func Stall() Step { return Step{end: endStall} }

// Func computes all further responses, concurrently. It is the last step and may remain unused.
func Func(each func(Request) Step) Step { return Step{each: each} }

// Header sets a header of the response.
func (s Step) Header(name, value string) Step {
	s.header = s.header.Clone()
	if s.header == nil {
		s.header = http.Header{}
	}
	s.header.Set(name, value)
	return s
}

// RetryAfter sets the Retry-After header: seconds or an HTTP date.
func (s Step) RetryAfter(value string) Step { return s.Header("Retry-After", value) }

// HoldAfter waits for the gate after the n-th token or piece; 0: before the first byte.
func (s Step) HoldAfter(n int, gate *Gate) Step {
	s.gates = maps.Clone(s.gates)
	if s.gates == nil {
		s.gates = map[int]*Gate{}
	}
	s.gates[n] = gate
	return s
}

// Every sets the delay between tokens or pieces, for benchmarks. Tests use [Step.HoldAfter].
func (s Step) Every(pace time.Duration) Step {
	s.pace = pace
	return s
}

// CutAt breaks the connection after n bytes of the body.
func (s Step) CutAt(n int) Step {
	s.isCut, s.cutAt = true, n
	return s
}

// Calls sets the tool calls after the text, each in three chunks, with the finish reason "tool_calls".
// A chunk counts as a token in [Step.HoldAfter], and a call as one token of usage.
func (s Step) Calls(calls ...Call) Step {
	return s.withAnswer(func(a *answer) {
		a.outputTokens += len(calls) - len(a.calls)
		a.calls, a.finishReason = calls, "tool_calls"
	})
}

// Offered fails the test unless the request offers exactly these tools, in this order.
func (s Step) Offered(names ...string) Step {
	return s.Expect(func(r Request) error {
		if offered := r.ToolNames(); !slices.Equal(offered, names) {
			return fmt.Errorf("the tools %q are offered, not %q", offered, names)
		}
		return nil
	})
}

// Expect fails the test if check returns an error for the request. The step is performed anyway. In a
// [Func], call Expect on the step that the function returns.
func (s Step) Expect(check func(Request) error) Step {
	s.checks = append(slices.Clip(s.checks), check)
	return s
}

// Finish sets the finish reason of an answer; "" omits it.
func (s Step) Finish(reason string) Step {
	return s.withAnswer(func(a *answer) { a.finishReason = reason })
}

// Usage sets the reported token usage of an answer.
func (s Step) Usage(input, output int) Step {
	return s.withAnswer(func(a *answer) { a.inputTokens, a.outputTokens = input, output })
}

// Cached sets the number of input tokens that the usage of an answer reports as cached.
func (s Step) Cached(tokens int) Step {
	return s.withAnswer(func(a *answer) { a.cachedTokens = tokens })
}

// Thinking streams reasoning_content before the answer, counted by [Step.HoldAfter] but not as usage.
func (s Step) Thinking(tokens ...string) Step {
	return s.withAnswer(func(a *answer) { a.thoughts = tokens })
}

// NoUsage omits the usage, as some servers do.
func (s Step) NoUsage() Step {
	return s.withAnswer(func(a *answer) { a.isSilent = true })
}

func (s Step) withAnswer(change func(*answer)) Step {
	if s.answer == nil {
		panic("llmtest: this method of a Step requires an Answer")
	}
	copied := *s.answer
	change(&copied)
	s.answer = &copied
	return s
}

// Len returns the length of the body in bytes.
func (s Step) Len() int { return len(strings.Join(s.pieces(), "")) }

// pieces returns the pieces of the body. In an answer, each piece but the last ends with a token: of text, of
// reasoning, or a chunk of a call.
func (s Step) pieces() []string {
	if s.answer == nil {
		return s.body
	}
	a := s.answer
	opening := Chunk(`{"role":"assistant","content":""}`, "")
	var pieces []string
	for _, thought := range a.thoughts {
		pieces = append(pieces, Chunk(fmt.Sprintf(`{"content":null,"reasoning_content":%s}`, encode(thought)), ""))
	}
	for _, token := range a.tokens {
		pieces = append(pieces, Chunk(fmt.Sprintf(`{"content":%s}`, encode(token)), ""))
	}
	for i, call := range a.calls {
		pieces = append(pieces, call.chunks(i)...)
	}
	closing := ""
	if a.finishReason != "" {
		closing += Chunk(`{}`, a.finishReason)
	}
	if !a.isSilent {
		details := ""
		if a.cachedTokens > 0 {
			details = fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, a.cachedTokens)
		}
		closing += usageChunk(a.inputTokens, a.outputTokens, details)
	}
	closing += Done
	if len(pieces) > 0 {
		pieces[0] = opening + pieces[0]
		return slices.Concat(pieces, []string{closing})
	}
	return []string{opening + closing}
}

func (c Call) chunks(i int) []string {
	id, name := "", encode(c.Name)
	if c.ID != "" {
		id = fmt.Sprintf(`"id":%s,`, encode(c.ID))
	}
	chunks := []string{Chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s"type":"function","function":{"name":%s,"arguments":""}}]}`, i, id, name), "")}
	half := len(c.Arguments) / 2
	for half > 0 && !utf8.RuneStart(c.Arguments[half]) {
		half--
	}
	for _, part := range []string{c.Arguments[:half], c.Arguments[half:]} {
		chunks = append(chunks, Chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, encode(part)), ""))
	}
	return chunks
}

func encode(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// Done is the line that ends a stream.
const Done = "data: [DONE]\n\n"

// Chunk is a stream event with one choice. delta is a JSON object; "" as finishReason is null.
func Chunk(delta, finishReason string) string {
	reason := "null"
	if finishReason != "" {
		reason = fmt.Sprintf("%q", finishReason)
	}
	return fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[{"index":0,"delta":%s,"finish_reason":%s}],"usage":null}`+"\n\n",
		delta, reason)
}

// UsageChunk returns the stream event with the usage and no choices.
func UsageChunk(input, output int) string { return usageChunk(input, output, "") }

func usageChunk(input, output int, details string) string {
	return fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d%s}}`+"\n\n",
		input, output, input+output, details)
}
