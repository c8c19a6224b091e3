package llmtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
)

// inner is a test inside the test, which may fail.
type inner struct {
	complaints []string
	cleanups   []func()
}

func (*inner) Helper()            {}
func (i *inner) Cleanup(f func()) { i.cleanups = append(i.cleanups, f) }
func (i *inner) Errorf(format string, args ...any) {
	i.complaints = append(i.complaints, fmt.Sprintf(format, args...))
}

// end ends the inner test and returns its complaints.
func (i *inner) end() []string {
	for _, f := range i.cleanups {
		f()
	}
	return i.complaints
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func ask(ctx context.Context, url, text string) (*http.Response, error) {
	body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":%q}]}`, text)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

// asked is the status and the body of the answer.
func asked(t testing.TB, url, text string) (int, string) {
	t.Helper()
	resp, err := ask(within(t), url, text)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestScriptIsPlayedInOrder(t *testing.T) {
	model := llmtest.Start(t,
		llmtest.Error(429, "rate_limit_exceeded", "slow down").RetryAfter("7"),
		llmtest.Answer("Hi"),
	)
	resp, err := ask(within(t), model.URL, "first")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 429, resp.StatusCode)
	require.Equal(t, "7", resp.Header.Get("Retry-After"))

	status, body := asked(t, model.URL, "second")
	require.Equal(t, 200, status)
	require.Equal(t, llmtest.Chunk(`{"role":"assistant","content":""}`, "")+llmtest.Chunk(`{"content":"Hi"}`, "")+
		llmtest.Chunk(`{}`, "stop")+llmtest.UsageChunk(7, 1)+llmtest.Done, body)

	require.Len(t, model.Requests(), 2)
	require.Equal(t, "second", model.Requests()[1].LastUser())
}

func TestRequestBeyondTheScriptFailsTheTest(t *testing.T) {
	test := &inner{}
	model := llmtest.Start(test, llmtest.Answer("Hi"))
	asked(t, model.URL, "first")
	status, _ := asked(t, model.URL, "second")
	require.Equal(t, http.StatusInternalServerError, status)
	complaints := test.end()
	require.Len(t, complaints, 1)
	require.Contains(t, complaints[0], "request 2 comes after the end of the script")
}

func TestAnUnusedStepFailsTheTest(t *testing.T) {
	test := &inner{}
	model := llmtest.Start(test, llmtest.Answer("Hi"), llmtest.Answer("Ho"), llmtest.Drop())
	asked(t, model.URL, "first")
	require.Equal(t, []string{"llmtest: 2 unused step(s) after 1 request(s)"}, test.end())
}

func TestRequestToAnotherEndpointFailsTheTest(t *testing.T) {
	test := &inner{}
	model := llmtest.Start(test)
	resp, err := http.Get(model.URL + "/models")
	require.NoError(t, err)
	resp.Body.Close()
	resp, err = http.Post(model.URL+"/chat/completions", "application/json", strings.NewReader("{"))
	require.NoError(t, err)
	resp.Body.Close()
	complaints := test.end()
	require.Len(t, complaints, 2)
	require.Contains(t, complaints[0], "only POST /v1/chat/completions is served")
	require.Contains(t, complaints[1], "not a chat completion")
}

func TestFuncAnswersAllFurtherRequests(t *testing.T) {
	model := llmtest.Start(t, llmtest.Answer("first"), llmtest.Func(func(r llmtest.Request) llmtest.Step {
		return llmtest.Answer("you said " + r.LastUser())
	}))
	_, body := asked(t, model.URL, "a")
	require.Contains(t, body, "first")
	for _, text := range []string{"b", "c"} {
		_, body = asked(t, model.URL, text)
		require.Contains(t, body, "you said "+text)
	}
	require.Panics(t, func() { model.Then(llmtest.Drop()) }, "a step behind a function is never reached")
}

func TestGateHoldsTheAnswer(t *testing.T) {
	gate := llmtest.NewGate()
	model := llmtest.Start(t, llmtest.Answer("one", "two").HoldAfter(1, gate))
	resp, err := ask(within(t), model.URL, "go")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, gate.Reached(within(t)))
	_, err = model.Request(within(t), 1)
	require.NoError(t, err)
	gate.Open()
	gate.Open()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "two")
}

func TestServerNoticesAnAbortedRequest(t *testing.T) {
	for name, step := range map[string]llmtest.Step{
		"in a stall":            llmtest.Stall(),
		"at a gate":             llmtest.Answer("one").HoldAfter(0, llmtest.NewGate()),
		"between two tokens":    llmtest.Answer("one", "two").Every(time.Hour),
		"at a gate in the body": llmtest.Raw("text/plain", "a", "b").HoldAfter(1, llmtest.NewGate()),
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, step)
			ctx, cancel := context.WithCancel(within(t))
			ended := make(chan error, 1)
			go func() {
				resp, err := ask(ctx, model.URL, "go")
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				ended <- err
			}()
			_, err := model.Request(within(t), 1)
			require.NoError(t, err)
			cancel()
			require.NoError(t, model.Aborted(within(t), 1))
			require.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	model := llmtest.Start(t)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := model.Request(over, 1)
	require.EqualError(t, err, "llmtest: request 1 has not arrived: context canceled")
	require.EqualError(t, model.Aborted(over, 1), "llmtest: request 1 was not aborted: context canceled")
	require.EqualError(t, llmtest.NewGate().Reached(over), "llmtest: no step has reached the gate: context canceled")
}

func TestTheEndOfTheTestReleasesBlockedSteps(t *testing.T) {
	test := &inner{}
	model := llmtest.Start(test, llmtest.Stall())
	ended := make(chan error, 1)
	go func() {
		_, err := ask(within(t), model.URL, "go")
		ended <- err
	}()
	_, err := model.Request(within(t), 1)
	require.NoError(t, err)
	require.Empty(t, test.end())
	require.Error(t, <-ended)
}

func TestBrokenAnswers(t *testing.T) {
	model := llmtest.Start(t, llmtest.Drop(), llmtest.Answer("one", "two").CutAt(10), llmtest.Raw("text/plain", "ab", "cd").CutAt(3))
	_, err := ask(within(t), model.URL, "go")
	require.ErrorIs(t, err, io.EOF)
	for _, want := range []string{`data: {"id`, "abc"} {
		resp, err := ask(within(t), model.URL, "go")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, want, string(body))
	}
}

func TestAnAnswerCallsTools(t *testing.T) {
	model := llmtest.Start(t,
		llmtest.Answer("Hm").Calls(llmtest.Call{ID: "c1", Name: "fetch", Arguments: `{"é":1}`}, llmtest.Call{Name: "run"}),
		llmtest.Calls(llmtest.Call{ID: "c2", Name: "run", Arguments: "{}"}).NoUsage(),
	)
	_, body := asked(t, model.URL, "go")
	require.Equal(t, llmtest.Chunk(`{"role":"assistant","content":""}`, "")+llmtest.Chunk(`{"content":"Hm"}`, "")+
		llmtest.Chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"fetch","arguments":""}}]}`, "")+
		llmtest.Chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"é"}}]}`, "")+
		llmtest.Chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]}`, "")+
		llmtest.Chunk(`{"tool_calls":[{"index":1,"type":"function","function":{"name":"run","arguments":""}}]}`, "")+
		strings.Repeat(llmtest.Chunk(`{"tool_calls":[{"index":1,"function":{"arguments":""}}]}`, ""), 2)+
		llmtest.Chunk(`{}`, "tool_calls")+llmtest.UsageChunk(7, 3)+llmtest.Done, body)

	_, body = asked(t, model.URL, "go")
	require.NotContains(t, body, "Hm")
	require.Contains(t, body, `"finish_reason":"tool_calls"`)
}

func TestAnUnexpectedOfferFailsTheTest(t *testing.T) {
	const offer = `,"tools":[{"type":"function","function":{"name":"fetch"}},{"type":"function","function":{"name":"run"}}]`
	for name, test := range map[string]struct {
		step  llmtest.Step
		tools string
		want  string
	}{
		"the expected tools": {llmtest.Answer("Hi").Offered("fetch", "run"), offer, ""},
		"no tools":           {llmtest.Answer("Hi").Offered(), "", ""},
		"others":             {llmtest.Answer("Hi").Offered("run"), offer, `the tools ["fetch" "run"] are offered, not ["run"]`},
		"missing":            {llmtest.Answer("Hi").Offered("run"), "", `the tools [] are offered, not ["run"]`},
		"unexpected":         {llmtest.Func(func(llmtest.Request) llmtest.Step { return llmtest.Answer("Hi").Offered() }), offer, "are offered, not []"},
		"another check":      {llmtest.Answer("Hi").Offered().Expect(func(llmtest.Request) error { return io.EOF }), "", "request 1: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			script := &inner{}
			model := llmtest.Start(script, test.step)
			resp, err := http.Post(model.URL+"/chat/completions", "application/json", strings.NewReader(`{"messages":[]`+test.tools+`}`))
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, 200, resp.StatusCode, "the step is performed anyway")
			complaints := script.end()
			if test.want == "" {
				require.Empty(t, complaints)
				return
			}
			require.Len(t, complaints, 1)
			require.Contains(t, complaints[0], test.want)
		})
	}
}

func TestResultsAreThoseOfTheNewestAnswer(t *testing.T) {
	for body, want := range map[string][]string{
		`[]`: nil,
		`[{"role":"tool","content":"old"},{"role":"assistant","content":"x"},{"role":"tool","content":"a"},{"role":"tool","content":"b"}]`: {"a", "b"},
		`[{"role":"tool","content":"a"},{"role":"user","content":"b"}]`:                                                                    nil,
	} {
		var r llmtest.Request
		require.NoError(t, json.Unmarshal([]byte(`{"messages":`+body+`}`), &r.ChatCompletionRequest))
		require.Equal(t, want, r.Results())
	}
}
