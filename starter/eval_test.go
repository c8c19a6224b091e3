package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/starter/evaluate"
)

// evaluated has a recorded answer, "Hi", that a model repeats as candidate and as baseline.
func evaluated(t *testing.T, baseline, candidate string) *fakeContext {
	f := newFake(t)
	f.recordBodies(event.UserMessage{Content: "Hello"})
	f.recordBodies(answered("demo:r0001", 1, "Hi")...)
	f.evaluate = func(id string, e client.Evaluation) (client.Evaluated, error) {
		require.Equal(t, [2]string{"demo:0002", "demo:0003"}, [2]string{e.Through, e.Answer})
		text := baseline
		if e.Provider != nil || e.System != nil {
			text = candidate
		}
		if text == "" {
			return client.Evaluated{}, errors.New("worker failed")
		}
		return client.Evaluated{Model: "m", Text: text}, nil
	}
	return f
}

func evalIn(t *testing.T) (output string, args []string) {
	output = filepath.Join(t.TempDir(), "eval")
	return output, []string{"eval", "-n", "demo", "--provider", "openai", "--model", "gpt-4o", "-o", output}
}

func TestEvalComparesAnswers(t *testing.T) {
	output, args := evalIn(t)
	want := "1 answer of 1 context, agreement by words\n" +
		"recorded: agreement 100%, 0 failed, 0 tokens in, 0 out, cost unknown, 0s\n" +
		"recorded configuration, again: agreement 100%, 0 failed, 0 tokens in, 0 out, cost unknown, 0s\n" +
		"openai gpt-4o: agreement 50%, 0 failed, 0 tokens in, 0 out, cost unknown, 0s\n" +
		"report: " + output + ".html, " + output + ".json\n"
	require.Equal(t, outcome{0, want, ""}, starter(t, evaluated(t, "Hi", "Hi, how are"), "", args...))
	require.FileExists(t, output+".html")
	var report evaluate.Report
	data, err := os.ReadFile(output + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &report))
	require.Equal(t, "Hi, how are", report.Questions[0].Candidate.Text)

	asksNothing := evaluated(t, "", "")
	require.Equal(t, outcome{0, want, "continuing: 2 of 2 answers are in " + output + ".jsonl\n"}, starter(t, asksNothing, "", args...))
	got := starter(t, asksNothing, "", append(args, "--min-agreement", "0.51")...)
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.errOut, "starter: eval: the agreement of openai gpt-4o is 0.500 (want 0.51 or more)\n")
	require.Zero(t, starter(t, asksNothing, "", append(args, "--min-agreement", "0.5")...).code)
	require.Equal(t, exit.Failure, starter(t, asksNothing, "", append(args, "--system", "Be brief.")...).code, "other settings")

	got = starter(t, asksNothing, "", append(args, "--json", "--measure", "exact")...)
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	require.Zero(t, report.Candidate.Agreement)
}

func TestEvalAsksTheQuestionsOfARepeatedNameOnce(t *testing.T) {
	_, args := evalIn(t)
	got := starter(t, evaluated(t, "Hi", "Hi"), "", append(args, "-n", "demo")...)
	require.Zero(t, got.code, got.errOut)
	require.Contains(t, got.out, "1 answer of 1 context, ")
}

// invalidFilter is like an error of the Temporal API.
type invalidFilter struct{ error }

func (invalidFilter) Status() *status.Status { return status.New(codes.InvalidArgument, "") }

func TestEvalNamesTheFlagOfAnInvalidFilter(t *testing.T) {
	c := &fakeClient{context: newFake(t), listErr: invalidFilter{errors.New("invalid query")}}
	got := starterWith(t, t.Context(), c, strings.NewReader(""), "eval", "--contexts", "Bad = ", "--system", "x", "-o", filepath.Join(t.TempDir(), "eval"))
	require.Equal(t, exit.Usage, got.code)
	require.Contains(t, got.errOut, `--contexts "Bad = ": invalid query`)
}

func TestEvalAsksAgainWhatFailed(t *testing.T) {
	output, args := evalIn(t)
	got := starter(t, evaluated(t, "Hi", ""), "", args...)
	require.Equal(t, exit.Failure, got.code)
	require.Contains(t, got.errOut, "starter: eval: 1 request not answered, the first with worker failed (see "+output+".html; the same command asks again)\n")
	require.Zero(t, starter(t, evaluated(t, "", "Hi"), "", args...).code)
}

func TestEvalReadsTheContextsOfAQuery(t *testing.T) {
	first, second := evaluated(t, "Hi", "Hi"), newFakeOf(t, "other")
	second.recordBodies(event.UserMessage{Content: "Not answered"})
	c := &fakeClient{context: first, others: []*fakeContext{second}, list: []client.Summary{{ContextName: "other"}, {ContextName: "demo"}}}
	args := []string{"eval", "--contexts", "ContextTurns > 0", "--system", "", "--output", filepath.Join(t.TempDir(), "eval")}
	got := starterWith(t, t.Context(), c, strings.NewReader(""), args...)
	require.Zero(t, got.code, got.errOut)
	require.Equal(t, "ContextTurns > 0", c.query)
	require.Contains(t, got.out, "the recorded model with another system prompt: agreement 100%")

	c.list = c.list[:1]
	require.Equal(t, outcome{exit.Failure, "", "starter: eval: no recorded answer in 1 context\n"}, starterWith(t, t.Context(), c, strings.NewReader(""), args...))
}

func TestEvalDrawsItsProgress(t *testing.T) {
	_, args := evalIn(t)
	got := runStarter(t, t.Context(), &fakeClient{context: evaluated(t, "Hi", "Hi")}, streams{in: strings.NewReader(""), errTerminal: true}, append(args, "--concurrency", "1")...)
	require.Contains(t, got.errOut, "\r["+strings.Repeat("#", 15)+strings.Repeat("-", 15)+"] 1 of 2 answers\x1b[K")
	require.True(t, strings.HasSuffix(got.errOut, "\r\x1b[K"))
}

func TestEvalRejectsInvalidArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"--contexts: missing":                   {"--system", "x"},
		"--contexts: cannot be used with":       {"--system", "x", "-n", "demo", "--contexts", ""},
		"--provider: missing":                   {"-n", "demo"},
		"--provider: missing\n":                 {"-n", "demo", "--system", "x", "--base-url", "http://127.0.0.1/v1"},
		`--measure "judge": want exact`:         {"-n", "demo", "--system", "x", "--measure", "judge"},
		"--min-agreement 2: out of range":       {"-n", "demo", "--system", "x", "--min-agreement", "2"},
		"--min-agreement NaN: out of range":     {"-n", "demo", "--system", "x", "--min-agreement", "NaN"},
		"--concurrency 0: out of range":         {"-n", "demo", "--system", "x", "--concurrency", "0"},
		"--limit -1: want 0 or more":            {"-n", "demo", "--system", "x", "--limit", "-1"},
		`--output "x/": want the path`:          {"-n", "demo", "--system", "x", "-o", "x/"},
		"missing is not an existing directory":  {"-n", "demo", "--system", "x", "-o", "missing/x"},
		"a name has 1-128 of A-Z a-z 0-9 . _ -": {"-n", "de mo", "--system", "x"},
	} {
		got := starter(t, newFake(t), "", append([]string{"eval"}, args...)...)
		require.Equal(t, exit.Usage, got.code, want)
		require.Contains(t, got.errOut, want)
	}
}
