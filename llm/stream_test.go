package llm_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// testKey is too long to occur in an error by accident.
const testKey = "test-key-d41d8cd98f00b204"

var hello = []reducer.Message{{Role: reducer.RoleUser, Content: "Hello"}}

// modelExample allows the base URL of models within the process.
var modelExample = []baseurl.URL{baseurl.MustParse("http://model.example")}

// resolve configures a provider with the base URL of a config, and testKey.
func resolve(t testing.TB, cfg reducer.ProviderConfig) *llm.Target {
	t.Helper()
	if cfg.ProviderID == "" {
		cfg.ProviderID = "scripted"
	}
	if cfg.Model == "" {
		cfg.Model = "model-1"
	}
	provider := llm.Provider{ID: cfg.ProviderID, BaseURL: baseurl.MustParse(cfg.BaseURL), KeyRef: "env:TEST_API_KEY"}
	cfg.BaseURL = ""
	target, err := llm.New(llm.Options{
		Getenv: func(string) string { return testKey }, Providers: []llm.Provider{provider},
	}).Resolve(cfg)
	require.NoError(t, err)
	return target
}

func target(t testing.TB, model *llmtest.Server) *llm.Target {
	t.Helper()
	return resolve(t, reducer.ProviderConfig{BaseURL: model.URL})
}

// requireKind requires an *llm.Error of a kind and returns it.
func requireKind(t testing.TB, kind llm.Kind, err error) *llm.Error {
	t.Helper()
	var failed *llm.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, kind, failed.Kind, "%v", err)
	return failed
}

// within returns a context with a generous limit for fast operations.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestAnswerIsStreamed(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("Hello", " there", "!").Usage(12, 3))
	var pieces []string
	result, err := target(t, model).Stream(within(t), hello, func(d llm.Delta) { pieces = append(pieces, d.Text) })
	require.NoError(t, err)
	require.Equal(t, []string{"Hello", " there", "!"}, pieces)
	require.Equal(t, llm.Result{
		Text: "Hello there!", FinishReason: "stop", Usage: event.Usage{InputTokens: 12, OutputTokens: 3},
	}, result)

	request := model.Requests()[0]
	require.Equal(t, "model-1", request.Model)
	require.True(t, request.Stream)
	require.True(t, request.StreamOptions.IncludeUsage)
	require.Equal(t, "Bearer "+testKey, request.Header.Get("Authorization"))
}

func TestStreamFormats(t *testing.T) {
	const sse = "text/event-stream"
	text := llmtest.Chunk(`{"content":"Hi"}`, "")
	end := llmtest.Chunk(`{}`, "stop")
	tests := map[string]struct{ step llmtest.Step }{
		"an end without [DONE]":                       {step: llmtest.Raw(sse, text, end)},
		"an end without a last line feed":             {step: llmtest.Raw(sse, text, strings.TrimSpace(end))},
		"a content of null first":                     {step: llmtest.Raw(sse, llmtest.Chunk(`{"role":"assistant","content":null}`, ""), text, end)},
		"an empty content first":                      {step: llmtest.Raw(sse, llmtest.Chunk(`{"content":""}`, ""), text, end)},
		"no content first":                            {step: llmtest.Raw(sse, llmtest.Chunk(`{"role":"assistant"}`, ""), text, end)},
		"reasoning before the text":                   {step: llmtest.Raw(sse, llmtest.Chunk(`{"reasoning_content":"hm"}`, ""), text, end)},
		"text beside the finish reason":               {step: llmtest.Raw(sse, llmtest.Chunk(`{"content":"Hi"}`, "stop"), llmtest.Done)},
		"usage after the last choice":                 {step: llmtest.Raw(sse, text, end, llmtest.UsageChunk(7, 1), llmtest.Done)},
		"usage beside the last choice":                {step: llmtest.Raw(sse, text, strings.Replace(end, `"usage":null`, `"usage":{"completion_tokens":1}`, 1))},
		"no usage":                                    {step: llmtest.Answer("Hi").NoUsage()},
		"a chunk without choices first":               {step: llmtest.Raw(sse, `data: {"choices":[],"prompt_filter_results":[]}`+"\n\n", text, end)},
		"an error of null in every chunk":             {step: llmtest.Raw(sse, strings.Replace(text, "{", `{"error":null,`, 1), end)},
		"media type text/plain":                       {step: llmtest.Raw("text/plain", text, end, llmtest.Done)},
		"CRLF":                                        {step: llmtest.Raw(sse, strings.ReplaceAll(text+end+llmtest.Done, "\n", "\r\n"))},
		"no space after data:":                        {step: llmtest.Raw(sse, strings.ReplaceAll(text+end, "data: ", "data:"))},
		"event names and ids":                         {step: llmtest.Raw(sse, "event: chunk\nid: 1\n"+text+"event: chunk\nid: 2\n"+end)},
		"many comments":                               {step: llmtest.Raw(sse, strings.Repeat(": keep-alive\n\n", 2000), text, strings.Repeat(":\n\n", 2000), end)},
		"chunks cut anywhere":                         {step: llmtest.Raw(sse, strings.Split(text+end+llmtest.Done, "")...)},
		"a cut after the finish reason":               {step: llmtest.Raw(sse, text, end+": more").CutAt(len(text + end))},
		"a refusal of the model, which is its answer": {step: llmtest.Raw(sse, llmtest.Chunk(`{"refusal":"Hi"}`, ""), end)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := target(t, llmtest.Start(t, test.step)).Stream(within(t), hello, nil)
			require.NoError(t, err)
			require.Equal(t, "Hi", result.Text)
			require.Equal(t, "stop", result.FinishReason)
			require.Positive(t, result.OutputTokens, "reported or estimated")
		})
	}
}

func TestIncompleteAnswersAreErrors(t *testing.T) {
	const sse = "text/event-stream"
	text := llmtest.Chunk(`{"content":"Hi"}`, "")
	tests := map[string]struct {
		step     llmtest.Step
		kind     llm.Kind
		status   int
		says     string
		text     string
		final    bool // it must not be retried
		isCutOff bool
	}{
		"a connection closed before the headers": {step: llmtest.Drop(), kind: llm.KindConnection, says: "closed before a response"},
		"an empty response with status 200":      {step: llmtest.Raw(sse), kind: llm.KindTruncated, says: "the answer is empty", isCutOff: true},
		"HTML with status 200":                   {step: llmtest.Raw("text/html", "<html>\n<b>Welcome</b>"), kind: llm.KindTruncated, says: "the response has no chunk of an answer (media type: text/html)", isCutOff: true},
		"a success with a JSON error":            {step: llmtest.Raw("application/json", `{"error":{"message":"bad model","type":"invalid_request_error"}}`), kind: llm.KindBadRequest, says: "bad model", final: true},
		"a success with a JSON answer":           {step: llmtest.Raw("application/json", `{"choices":[{"message":{"content":"Hi"}}]}`), kind: llm.KindTruncated, text: "Hi", isCutOff: true},
		"[DONE] and nothing else":                {step: llmtest.Raw(sse, llmtest.Done), kind: llm.KindTruncated, says: "without a finish reason", isCutOff: true},
		"usage and nothing else":                 {step: llmtest.Raw(sse, llmtest.UsageChunk(1, 0), llmtest.Done), kind: llm.KindTruncated, isCutOff: true},
		"comments and nothing else":              {step: llmtest.Raw(sse, ": hm\n\n"), kind: llm.KindTruncated, isCutOff: true},
		"text without a finish reason":           {step: llmtest.Raw(sse, text), kind: llm.KindTruncated, text: "Hi", isCutOff: true},
		"a cut between events":                   {step: llmtest.Raw(sse, text, text).CutAt(len(text)), kind: llm.KindTruncated, text: "Hi", isCutOff: true},
		"a cut inside an event":                  {step: llmtest.Raw(sse, text, text).CutAt(len(text) + 20), kind: llm.KindTruncated, text: "Hi", isCutOff: true},
		"a cut before the first event":           {step: llmtest.Raw(sse, text).CutAt(0), kind: llm.KindTruncated, isCutOff: true},
		"an event with invalid JSON":             {step: llmtest.Raw(sse, text, "data: {\"cho\n\n"), kind: llm.KindTruncated, text: "Hi", isCutOff: true},
		"an error object in the stream":          {step: llmtest.Raw(sse, text, `data: {"error":{"message":"engine down","type":"server_error","code":null}}`+"\n\n"), kind: llm.KindServer, says: "engine down", text: "Hi"},
		"an error object behind comments":        {step: llmtest.Raw(sse, ": PROCESSING\n\n", text, "event: error\n", `data: {"error":{"message":"engine down"}}`+"\n\n"), kind: llm.KindServer, says: "engine down", text: "Hi"},
		"an error object beside an empty choice": {step: llmtest.Raw(sse, text, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}],"error":{"code":429,"message":"slow down"}}`+"\n\n"), kind: llm.KindRateLimited, status: 429, says: "slow down", text: "Hi"},
		"an error that is a string":              {step: llmtest.Raw(sse, `data: {"error":"model runner died"}`+"\n\n"), kind: llm.KindServer, says: "model runner died"},
		"an error with a code that is a string":  {step: llmtest.Raw(sse, `data: {"error":{"message":"too big","code":"context_length_exceeded"}}`+"\n\n"), kind: llm.KindContextTooLong, final: true},
		"an error without any text":              {step: llmtest.Raw(sse, `data: {"error":{}}`+"\n\n"), kind: llm.KindServer, says: "the server gives no reason"},
		"finish reason error":                    {step: llmtest.Answer("Hi").Finish("error"), kind: llm.KindServer, text: "Hi"},
		"a filter before any text":               {step: llmtest.Answer().Finish("content_filter"), kind: llm.KindContentFilter, final: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := target(t, llmtest.Start(t, test.step)).Stream(within(t), hello, nil)
			failed := requireKind(t, test.kind, err)
			require.Equal(t, "scripted", failed.ProviderID)
			require.Equal(t, test.status, failed.Status)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, !test.final, failed.Retryable())
			require.Equal(t, test.isCutOff, errors.Is(err, io.ErrUnexpectedEOF))
			require.NotErrorIs(t, err, io.EOF, "an EOF would look like a complete answer")
			require.Equal(t, test.text, result.Text)
			require.Empty(t, result.FinishReason)
		})
	}
}

func TestAnswerStoppedLaterByAFilterIsAnAnswer(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("Once", " upon").Finish("content_filter"))
	result, err := target(t, model).Stream(within(t), hello, nil)
	require.NoError(t, err)
	require.Equal(t, "Once upon", result.Text)
	require.Equal(t, "content_filter", result.FinishReason)
}

func TestStreamCutAnywhereIsAnError(t *testing.T) {
	whole := llmtest.Answer("Hel", "lo").NoUsage()
	complete := whole.Len() - len(llmtest.Done) - 1 // includes the finish reason, without the empty line after it
	model := llmtest.Start(t)
	for n := range whole.Len() {
		model.Then(whole.CutAt(n))
		var text strings.Builder
		result, err := target(t, model).Stream(within(t), hello, func(d llm.Delta) { text.WriteString(d.Text) })
		require.Equal(t, text.String(), result.Text, "cut at byte %d", n)
		if n >= complete {
			require.NoError(t, err, "cut at byte %d", n)
			require.Equal(t, "Hello", result.Text)
			continue
		}
		requireKind(t, llm.KindTruncated, err)
		require.True(t, strings.HasPrefix("Hello", result.Text), "cut at byte %d: %q", n, result.Text)
	}
}

func TestCancelledRequestReturnsThePartialAnswer(t *testing.T) {
	gate := llmtest.NewGate()
	model := llmtest.Start(t, llmtest.Answer("one", "two").HoldAfter(1, gate))
	newInput := errors.New("new input")
	ctx, cancel := context.WithCancelCause(within(t))
	result, err := target(t, model).Stream(ctx, hello, func(llm.Delta) { cancel(newInput) })

	failed := requireKind(t, llm.KindCanceled, err)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, newInput)
	require.False(t, failed.Retryable())
	require.Equal(t, "one", result.Text)
	require.NoError(t, model.Aborted(within(t), 1), "the connection to the provider is not closed")
}

func TestCancellationPrecedesTheEndOfTheStream(t *testing.T) {
	client := &http.Client{Transport: canned{200, llmtest.Chunk(`{"content":"one"}`, "")}}
	target, err := llm.New(llm.Options{HTTPClient: client, AllowLoopback: true}).Resolve(reducer.ProviderConfig{ProviderID: "ollama", Model: "m"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(within(t))
	result, err := target.Stream(ctx, hello, func(llm.Delta) { cancel() })
	requireKind(t, llm.KindCanceled, err)
	require.Equal(t, "one", result.Text)
}

func TestDeadlineIsATimeout(t *testing.T) {
	tests := map[string]struct {
		step llmtest.Step
		text string
	}{
		"before the headers":          {step: llmtest.Stall()},
		"in the middle of the answer": {step: llmtest.Answer("one", "two").HoldAfter(1, llmtest.NewGate()), text: "one"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, test.step)
			// A cancellation with this cause stands for a deadline that passes.
			ctx, cancel := context.WithCancelCause(within(t))
			go func() {
				_, _ = model.Request(ctx, 1)
				if test.text == "" {
					cancel(context.DeadlineExceeded)
				}
			}()
			result, err := target(t, model).Stream(ctx, hello, func(llm.Delta) { cancel(context.DeadlineExceeded) })
			failed := requireKind(t, llm.KindTimeout, err)
			require.True(t, failed.Retryable())
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, test.text, result.Text)
		})
	}
	t.Run("that passed before the start", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 0)
		defer cancel()
		_, err := target(t, llmtest.Start(t)).Stream(ctx, hello, nil)
		requireKind(t, llm.KindTimeout, err)
	})
}

func TestUnreachableServerIsAConnectionError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, err = resolve(t, reducer.ProviderConfig{BaseURL: "http://" + listener.Addr().String() + "/v1"}).Stream(within(t), hello, nil)
	failed := requireKind(t, llm.KindConnection, err)
	require.True(t, failed.Retryable())
	require.ErrorContains(t, err, "connection refused")
}

func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := llmtest.Start(t) // fails the test on any request
	model := llmtest.Start(t, llmtest.Status(http.StatusTemporaryRedirect, "").Header("Location", elsewhere.URL))
	_, err := target(t, model).Stream(within(t), hello, nil)
	failed := requireKind(t, llm.KindBadRequest, err)
	require.Equal(t, 307, failed.Status)
	require.False(t, failed.Retryable())
	require.ErrorContains(t, err, model.URL+" redirects, and redirects are not followed")
	require.NotContains(t, err.Error(), elsewhere.URL)
}

// lateEnd is a transport that lets the server end a response only after the client has read
// beyond [DONE].
type lateEnd struct {
	http.RoundTripper
	end chan struct{}
}

func (l lateEnd) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &lateEndBody{ReadCloser: resp.Body, end: l.end}
	}
	return resp, err
}

type lateEndBody struct {
	io.ReadCloser
	end    chan struct{}
	isDone bool
}

func (b *lateEndBody) Read(p []byte) (int, error) {
	if b.isDone {
		b.isDone = false
		b.end <- struct{}{}
	}
	n, err := b.ReadCloser.Read(p)
	b.isDone = strings.Contains(string(p[:n]), "[DONE]")
	return n, err
}

func TestConnectionIsReusedAfterALateEnd(t *testing.T) {
	end := make(chan struct{}, 1)
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, llmtest.Chunk(`{"content":"Hi"}`, "stop")+llmtest.Done)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := llm.NewHTTPClient()
	client.Transport = lateEnd{client.Transport, end}
	target, err := llm.New(llm.Options{HTTPClient: client, AllowLoopback: true}).Resolve(reducer.ProviderConfig{ProviderID: "scripted", Model: "m", BaseURL: server.URL})
	require.NoError(t, err)
	for range 3 {
		_, err := target.Stream(within(t), hello, nil)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, connections.Load())
}
