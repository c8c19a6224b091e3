package openai_test

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/openai"
	"github.com/seed-9ed7edd4/chronicle/internal/npmtest"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/offline"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/chronicletest"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// serve runs all that clients reach, with the offline model, and returns the URLs of two gateways.
func serve(t *testing.T) (url, other string) {
	t.Helper()
	server := chronicletest.Start(t)
	model := httptest.NewServer(offline.Handler(offline.Options{}))
	t.Cleanup(model.Close)
	conn, err := contexts.Connect(t.Context(), server.Config())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	models := llm.New(llm.Options{Defaults: llm.Defaults{ProviderID: "offline", BaseURL: model.URL + "/v1", Model: "offline-echo"}})
	lookup, err := tool.New("lookup", "Look a word up", func(_ context.Context, in struct {
		Word string `json:"word"`
	}) (string, error) {
		return "the meaning of " + in.Word, nil
	})
	require.NoError(t, err)
	tools, err := tool.NewSet(tool.Options{}, lookup)
	require.NoError(t, err)
	worker, err := conn.NewWorker(contexts.Options{Models: models, Tools: tools})
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	begin := func() string {
		g := gateway.New(conn.Client(), gateway.Options{Rate: -1, Protocols: []gateway.Protocol{openai.Protocol()}})
		t.Cleanup(g.Close)
		web := httptest.NewServer(g)
		t.Cleanup(web.Close)
		t.Cleanup(web.CloseClientConnections)
		return web.URL
	}
	return begin(), begin()
}

// run runs a client, which prints ok at the end.
func run(t *testing.T, url, dir, name string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "URL="+url, "OPENAI_BASE_URL="+url+"/v1", "OPENAI_API_KEY=none", "OPENAI_AGENTS_DISABLE_TRACING=1")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, arguments, out)
	return string(out)
}

const goDir = "../../test/clients/openai-go"

// node runs a program with the npm packages.
func node(t *testing.T, url, name string, program []byte) string {
	t.Helper()
	dir := npmtest.Folder(t, "../..", "openai", "../../test/clients/openai")
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), program, 0o600))
	return run(t, url, dir, "node", name)
}

func TestUnmodifiedClients(t *testing.T) {
	url, other := serve(t)
	t.Setenv("OTHER_URL", other)
	for _, name := range []string{"responses.mjs", "tools.mjs", "chat.mjs", "agents.mjs", "aisdk.mjs"} {
		t.Run(name, func(t *testing.T) {
			program, err := os.ReadFile("../../test/clients/openai/" + name)
			require.NoError(t, err)
			require.Equal(t, "ok\n", node(t, url, name, program))
		})
	}
	t.Run("openai-go", func(t *testing.T) { require.Equal(t, "ok\n", run(t, url, goDir, "go", "run", ".")) })
	t.Run("go-openai", func(t *testing.T) { useGoOpenAI(t, url) })
	t.Run("documentation", func(t *testing.T) { runDocumented(t, url) })
}

// post sends a request; an empty key is none.
func post(t *testing.T, key, url, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return do(t, r)
}

func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return do(t, r)
}

func do(t *testing.T, r *http.Request) (status int, text string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(data)
}

func TestARejectedChatDiscardsNoContext(t *testing.T) {
	url, _ := serve(t)
	status, kept := post(t, "one", url+"/v1/responses", `{"input":"Hello"}`)
	require.Equal(t, http.StatusOK, status, kept)
	name := regexp.MustCompile(`"conversation":\{"id":"([^"]+)"`).FindStringSubmatch(kept)[1]
	status, text := post(t, "one", url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"store":false}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, text)
	status, text = post(t, "two", url+"/contexts/"+name+"/events", `{"_tag":"NoteEvent","kind":"system","content":"still open"}`)
	require.Equal(t, http.StatusAccepted, status, text)
	status, text = get(t, url+"/contexts/"+name+"/deletion")
	require.Equal(t, http.StatusNotFound, status, text)
}

func TestErrorsOfRequestsHaveTheStatusOfTheAPI(t *testing.T) {
	url, _ := serve(t)
	status, text := post(t, "", url+"/contexts/demo/events", `{"_tag":"NoteEvent","kind":"system","content":"begins demo"}`)
	require.Equal(t, http.StatusAccepted, status, text)
	for name, test := range map[string]struct {
		path, body string
		status     int
		code       string
		param      string // empty: any
	}{
		"an invalid value":               {"/v1/responses", `{"input":"Hi","temperature":3}`, 400, "invalid_value", "temperature"},
		"a foreign result":               {"/v1/responses", `{"input":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, 400, "invalid_value", "input"},
		"a result without its use":       {"/v1/responses", `{"conversation":"demo","input":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, 400, "invalid_value", "input"},
		"a foreign approval":             {"/v1/responses", `{"input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_c1","approve":true}]}`, 400, "invalid_value", "input"},
		"no approval":                    {"/v1/responses", `{"input":[{"type":"mcp_approval_response","approval_request_id":"c1","approve":true}]}`, 400, "invalid_value", "input"},
		"no decision":                    {"/v1/responses", `{"conversation":"demo","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_c1"}]}`, 400, "invalid_value", "input"},
		"an approval of other arguments": {"/v1/responses", `{"conversation":"demo","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_c1","approve":true,"arguments":"{}"}]}`, 400, "unsupported_parameter", "input"},
		"an approval without its call":   {"/v1/responses", `{"conversation":"demo","input":[{"type":"mcp_approval_response","approval_request_id":"mcpr_c1","approve":true}]}`, 400, "invalid_value", "input"},
		"an unknown provider":            {"/v1/responses", `{"input":"Hi","model":"nobody/model"}`, 404, "model_not_found", ""},
		"an unknown provider, of a chat": {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"model":"nobody/model"}`, 404, "model_not_found", ""},
		"a wrong type":                   {"/v1/responses", `{"input":"Hi","model":5}`, 400, "invalid_value", "model"},
		"a wrong type, of a chat":        {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"stream":"yes"}`, 400, "invalid_value", "stream"},
		"an unknown role":                {"/v1/responses", `{"input":[{"role":"king","content":"Hi"}]}`, 400, "invalid_value", "input"},
		"an unknown role, of a chat":     {"/v1/chat/completions", `{"messages":[{"role":"king","content":"Hi"}]}`, 400, "invalid_value", "messages"},
		"no messages":                    {"/v1/chat/completions", `{}`, 400, "invalid_value", "messages"},
		"no question":                    {"/v1/chat/completions", `{"messages":[{"role":"assistant","content":"Hi"}]}`, 400, "invalid_value", "messages"},
		"a foreign result, of a chat":    {"/v1/chat/completions", `{"messages":[{"role":"tool","tool_call_id":"c1","content":"x"}]}`, 400, "invalid_value", "messages"},
		"items of a wrong type":          {"/v1/conversations", `{"items":7}`, 400, "invalid_value", "items"},
		"a forced call without tools":    {"/v1/responses", `{"input":"Hi","tool_choice":"required"}`, 400, "invalid_value", "tool_choice"},
		"the choice of no tool":          {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"tool_choice":{"type":"function","function":{"name":"f"}}}`, 400, "invalid_value", "tool_choice"},
		"an invalid setting":             {"/v1/responses", `{"input":"Hi","top_p":2}`, 400, "invalid_value", "top_p"},
		"a limit, of a chat":             {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":0}`, 400, "invalid_value", "max_tokens"},
		"a new limit, of a chat":         {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"max_completion_tokens":0}`, 400, "invalid_value", "max_completion_tokens"},
		"an effort":                      {"/v1/responses", `{"input":"Hi","reasoning":{"effort":"huge"}}`, 400, "invalid_value", "reasoning.effort"},
		"a schema's name":                {"/v1/responses", `{"input":"Hi","text":{"format":{"type":"json_schema","name":"a b","schema":{}}}}`, 400, "invalid_value", "text.format.name"},
		"an empty input":                 {"/v1/responses", `{"input":""}`, 400, "invalid_value", "input"},
		"metadata":                       {"/v1/conversations", `{"metadata":{"":"x"}}`, 400, "invalid_value", "metadata"},
		"a tool's name":                  {"/v1/responses", `{"input":"Hi","tools":[{"type":"function","name":"a b","parameters":{}}]}`, 400, "invalid_value", "tools"},
		"an unknown field":               {"/v1/responses", `{"input":"Hi","prompt":{}}`, 400, "unsupported_parameter", "prompt"},
		"a mode of reasoning":            {"/v1/responses", `{"input":"Hi","reasoning":{"mode":"pro"}}`, 400, "unsupported_parameter", "reasoning.mode"},
		"a summary":                      {"/v1/responses", `{"input":"Hi","reasoning":{"summary":"long"}}`, 400, "invalid_value", "reasoning.summary"},
		"a verbosity":                    {"/v1/responses", `{"input":"Hi","text":{"verbosity":"chatty"}}`, 400, "invalid_value", "text.verbosity"},
		"a verbosity, of a chat":         {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"verbosity":"chatty"}`, 400, "invalid_value", "verbosity"},
		"a grammar":                      {"/v1/responses", `{"input":"Hi","text":{"format":{"type":"grammar","grammar":"x"}}}`, 400, "unsupported_parameter", "text.format.type"},
		"a field of a text":              {"/v1/responses", `{"input":"Hi","text":{"length":1}}`, 400, "unsupported_parameter", "text.length"},
		"an include":                     {"/v1/responses", `{"input":"Hi","include":["reasoning.encrypted_content","thoughts"]}`, 400, "invalid_value", "include[1]"},
		"log probabilities":              {"/v1/responses", `{"input":"Hi","include":["message.output_text.logprobs"]}`, 400, "unsupported_parameter", "include"},
		"a field of stream options":      {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"stream_options":{"include_cost":true}}`, 400, "unsupported_parameter", "stream_options.include_cost"},
		"a name of a message":            {"/v1/responses", `{"input":[{"role":"user","content":"Hi","name":"ann"}]}`, 400, "unsupported_parameter", "input[0].name"},
		"a name of a message, of a chat": {"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"},{"role":"user","content":"Hi","name":"ann"}]}`, 400, "unsupported_parameter", "messages[1].name"},
		"a field of an item":             {"/v1/responses", `{"input":[{"role":"user","content":"Hi","weight":0}]}`, 400, "unsupported_parameter", "input[0].weight"},
		"a type of an item":              {"/v1/responses", `{"input":[{"type":"computer_call","action":{}}]}`, 400, "unsupported_parameter", "input[0].type"},
		"a field of a part":              {"/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_text","text":"Hi","language":"en"}]}]}`, 400, "unsupported_parameter", "input[0].content[0].language"},
		"a type of a part":               {"/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_video","url":"x"}]}]}`, 400, "unsupported_parameter", "input[0].content[0].type"},
		"a stored file":                  {"/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`, 400, "unsupported_parameter", "input[0].content[0].file_id"},
		"a field of an image":            {"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://localhost/a.png","crop":1}}]}]}`, 400, "unsupported_parameter", "messages[0].content[0].image_url.crop"},
		"a file in a result":             {"/v1/responses", `{"input":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"See"},{"type":"input_image","image_url":"http://localhost/a.png"}]}]}`, 400, "unsupported_parameter", "input[1].output"},
		"a field of a tool":              {"/v1/responses", `{"input":"Hi","tools":[{"type":"function","name":"f","parameters":{},"defer_loading":true}]}`, 400, "unsupported_parameter", "tools[0].defer_loading"},
		"a type of a tool":               {"/v1/responses", `{"input":"Hi","tools":[{"type":"web_search","search_context_size":"low"}]}`, 400, "unsupported_parameter", "tools[0].type"},
		"a field of a choice":            {"/v1/responses", `{"input":"Hi","tool_choice":{"type":"function","name":"f","strength":1}}`, 400, "unsupported_parameter", "tool_choice.strength"},
		"a type of a choice":             {"/v1/responses", `{"input":"Hi","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}}`, 400, "unsupported_parameter", "tool_choice.type"},
		"an unknown reference":           {"/v1/responses", `{"input":[{"type":"item_reference","id":"msg_nobody_0004"},{"role":"user","content":"Hi"}]}`, 404, "not_found", "input[0].id"},
		"a malformed reference":          {"/v1/responses", `{"conversation":"demo","input":[{"role":"user","content":"Hi"},{"id":"msg_1"}]}`, 404, "not_found", "input[1].id"},
		"a reference in a conversation":  {"/v1/conversations", `{"items":[{"type":"item_reference","id":"msg_nobody_0004"}]}`, 400, "unsupported_parameter", "items[0].id"},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := post(t, "", url+test.path, test.body)
			require.Equal(t, test.status, status, text)
			require.Contains(t, text, `"type":"invalid_request_error"`)
			require.Contains(t, text, `"code":"`+test.code+`"`)
			if test.param != "" {
				require.Contains(t, text, `"param":"`+test.param+`"`)
			}
		})
	}
	t.Run("a rejected request leaves no context", func(t *testing.T) {
		body := `{"input":""}`
		status, text := post(t, "rejected", url+"/v1/responses", body)
		require.Equal(t, http.StatusBadRequest, status, text)
		sum := sha256.Sum256([]byte("rejected"))
		name := "resp-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20]))
		status, text = get(t, url+"/contexts/"+name+"/deletion")
		require.Equal(t, http.StatusOK, status, text)
	})
}

func TestTheTextsOfAResultAreJoined(t *testing.T) {
	url, _ := serve(t)
	told := respond(t, url, `{"input":[{"role":"user","content":"Look"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]}`)
	_, text := get(t, url+"/v1/responses/"+told.ID+"/input_items")
	require.Contains(t, text, `"output":"a\nb"`)
}

func TestModelsHaveOneOwner(t *testing.T) {
	url, _ := serve(t)
	for id, owner := range map[string]string{"default": "chronicle", "gpt-5": "openai", "groq/llama": "groq"} {
		_, text := get(t, url+"/v1/models/"+id)
		require.Contains(t, text, `"owned_by":"`+owner+`"`)
	}
	_, text := get(t, url+"/v1/models")
	require.Contains(t, text, `"id":"default","object":"model","created":0,"owned_by":"chronicle"`)
}

func useGoOpenAI(t *testing.T, url string) {
	config := goopenai.DefaultConfig("none")
	config.BaseURL = url + "/v1"
	client := goopenai.NewClientWithConfig(config)
	weather := goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{
		Name: "weather", Parameters: map[string]any{"type": "object", "properties": map[string]any{}},
	}}
	request := goopenai.ChatCompletionRequest{
		Model: "default", Tools: []goopenai.Tool{weather}, Metadata: map[string]string{"context": "go-openai"},
		Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "/call weather"}},
	}
	asked, err := client.CreateChatCompletion(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, goopenai.FinishReasonToolCalls, asked.Choices[0].FinishReason)
	answer := asked.Choices[0].Message
	require.Equal(t, "weather", answer.ToolCalls[0].Function.Name)
	request.Messages = append(request.Messages, answer, goopenai.ChatCompletionMessage{Role: "tool", Content: "sunny", ToolCallID: answer.ToolCalls[0].ID})
	stream, err := client.CreateChatCompletionStream(t.Context(), request)
	require.NoError(t, err)
	defer stream.Close()
	text := ""
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
		}
	}
	require.Contains(t, text, `The tool weather returned: "sunny".`)

	request.Messages = append(request.Messages[:1:1], goopenai.ChatCompletionMessage{Role: "assistant", Content: "No."}, request.Messages[0])
	_, err = client.CreateChatCompletion(t.Context(), request)
	var refused *goopenai.APIError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusBadRequest, refused.HTTPStatusCode)
	require.Contains(t, refused.Message, "contradicts the context")
}

// runDocumented runs the programs of docs/clients.md, each of which prints an answer.
func runDocumented(t *testing.T, url string) {
	text, err := os.ReadFile("../../docs/clients.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n## OpenAI's API\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	programs := regexp.MustCompile("(?s)```(js|go)\n(.*?)```").FindAllStringSubmatch(section, -1)
	require.Len(t, programs, 6)
	for i, program := range programs {
		t.Run(program[1]+" "+string(rune('1'+i)), func(t *testing.T) {
			require.LessOrEqual(t, strings.Count(program[2], "\n"), 20)
			out := ""
			if program[1] == "js" {
				out = node(t, url, "program.mjs", []byte(program[2]))
			} else {
				file := filepath.Join(t.TempDir(), "main.go")
				require.NoError(t, os.WriteFile(file, []byte(program[2]), 0o600))
				module := goDir
				if strings.Contains(program[2], "sashabaranov") {
					module = "."
				}
				out = run(t, url, module, "go", "run", file)
			}
			require.Contains(t, out, "Hello")
		})
	}
}
