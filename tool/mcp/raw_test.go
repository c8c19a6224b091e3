package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// request is a message to a raw server.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Cursor string `json:"cursor"`
		Name   string `json:"name"`
		Meta   struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`

	write func(text string) // before the response
}

// result returns the response with a result.
func (r request) result(result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

// say returns the response to a call with a text.
func (r request) say(text string) string {
	return r.result(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

const sayTool = `{"name":"say","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`

// correct returns what a server with the tool "say" answers; "" for a notification.
func correct(t *testing.T, r request) string {
	switch r.Method {
	case "initialize":
		return r.result(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"0"}}`)
	case "tools/list":
		return r.result(`{"tools":[` + sayTool + `]}`)
	case "tools/call":
		return r.say("said")
	case "server/discover":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, r.ID)
	case "notifications/initialized":
	default:
		t.Errorf("unexpected request %s", r.Method)
	}
	return ""
}

// raw makes server "a" write a text at its start and what a function returns for each request.
func raw(t *testing.T, greeting string, answer func(r request) string) *worker {
	t.Helper()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	w.Dial("a", func() (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			if _, err := io.WriteString(theirs, greeting); err != nil {
				return
			}
			for lines := bufio.NewScanner(theirs); lines.Scan(); {
				var r request
				if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
					t.Errorf("invalid request: %v", err)
					return
				}
				r.write = func(text string) { _, _ = io.WriteString(theirs, text) }
				if _, err := io.WriteString(theirs, answer(r)); err != nil {
					return
				}
			}
		}()
		return ours, nil
	})
	return w
}

// calling makes server "a" write what a function returns for each call.
func calling(t *testing.T, answer func(r request) string) *worker {
	return raw(t, "", func(r request) string {
		if r.Method == "tools/call" {
			return answer(r)
		}
		return line(correct(t, r))
	})
}

// line ends a message.
func line(message string) string {
	if message == "" {
		return ""
	}
	return message + "\n"
}

func TestMessagesAreFoundInTheOutput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		greeting string
		write    func(r request, message string) string
		quirks   string
	}{
		"a banner":                      {greeting: "Tide tables 3.2 {listening} on [stdio]\n", quirks: "mcp_stdout_noise 1"},
		"a banner in colors":            {greeting: "\x1b[32m✔ {ready\x1b[0m\r\n\r\n\n", quirks: "mcp_stdout_noise 1"},
		"a banner without a line break": {greeting: "loading... ", quirks: "mcp_stdout_noise 1"},
		"a byte order mark":             {greeting: "\ufeff"},
		"objects in a log": {write: func(_ request, m string) string {
			return `{"level":"info","id":1,"msg":"call {\"a\":1}","error":"none"}` + "\n" + line(m)
		}, quirks: "mcp_stdout_noise 3"},
		"a prefix on the line":  {write: func(_ request, m string) string { return "[out] it's {\"x\": " + line(m) }, quirks: "mcp_stdout_noise 3"},
		"CRLF":                  {write: func(_ request, m string) string { return m + "\r\n" }},
		"a response to nothing": {write: func(_ request, m string) string { return `{"jsonrpc":"2.0","id":987,"result":{}}` + "\n" + line(m) }},
		"ids as strings": {write: func(r request, m string) string {
			return line(strings.Replace(m, `"id":`+string(r.ID), `"id":"`+string(r.ID)+`"`, 1))
		}, quirks: "mcp_id_type 3"},
		"ids with a fraction": {write: func(r request, m string) string {
			return line(strings.Replace(m, `"id":`+string(r.ID), `"id":`+string(r.ID)+`.0`, 1))
		}, quirks: "mcp_id_type 3"},
		"another version":        {write: func(_ request, m string) string { return line(strings.Replace(m, `"2.0"`, `2`, 1)) }},
		"no error, and a result": {write: func(_ request, m string) string { return line(strings.TrimSuffix(m, "}") + `,"error":null}`) }},
		"parameters as a list": {write: func(_ request, m string) string {
			return "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":[]}\n" + line(m)
		}},
		"an unknown protocol version": {write: func(r request, m string) string {
			return line(strings.Replace(m, "2025-06-18", "2024-10-07", 1))
		}, quirks: "mcp_protocol_version 1"},
		"capabilities as a list": {write: func(_ request, m string) string {
			return line(strings.Replace(m, `"capabilities":{"tools":{}}`, `"capabilities":[],"instructions":[]`, 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := raw(t, test.greeting, func(r request) string {
				message := correct(t, r)
				if message == "" || test.write == nil {
					return line(message)
				}
				return test.write(r, message)
			})
			require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`))
			require.Equal(t, test.quirks, w.quirks(t))
		})
	}
}

// quirks returns the deviations of server "a" by kind.
func (w *worker) quirks(t *testing.T) string {
	t.Helper()
	status := w.Status(deadline(t), "a")
	require.NoError(t, status.Error)
	text := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(status.Quirks), "map["), "]")
	return strings.ReplaceAll(text, ":", " ")
}

func TestTextBetweenMessagesIsLogged(t *testing.T) {
	t.Parallel()
	w := raw(t, "Tide tables\x1b[1m 3.2\n", func(r request) string { return line(correct(t, r)) })
	w.value(t, "mcp__a__say", `{}`)
	w.log.await(deadline(t), t, `msg="MCP server wrote text that is no message to its standard output" server=a line="Tide tables 3.2"`)
}

func TestALongTextIsSkipped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("tide ", 4<<20) // 20 MiB
	w := calling(t, func(r request) string { return long + "\n" + line(r.say("said")) })
	require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`))
}

func TestACallWithATooLongResponseFails(t *testing.T) {
	t.Parallel()
	calls := 0
	w := calling(t, func(r request) string {
		if calls++; calls == 1 {
			return line(r.say(strings.Repeat("tide ", 4<<20)))
		}
		return line(r.say("said"))
	})
	require.Contains(t, w.failure(t, "mcp__a__say", `{}`), "a message of the server is longer than 16777216 bytes (the outcome of the call is unknown)")
	require.Equal(t, `"said"`, w.value(t, "mcp__a__say", `{}`), "the connection remains")
}

func TestErrorsOfOtherShapesAreRead(t *testing.T) {
	t.Parallel()
	for response, want := range map[string]string{
		`"error":"no tide today"`:                               "MCP server a: no tide today",
		`"error":{"code":-32003,"message":"no tide"}`:           "MCP server a: no tide",
		`"error":{"code":1,"message":null,"detail":"dry"}`:      `MCP server a: {\"code\":1,\"message\":null,\"detail\":\"dry\"}`,
		`"error":{"code":1,"message":{"en":"dry"}},"result":{}`: `MCP server a: {\"code\":1,\"message\":{\"en\":\"dry\"}}`,
	} {
		w := calling(t, func(r request) string { return fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", r.ID, response) })
		require.Equal(t, `"`+want+`"`, w.failure(t, "mcp__a__say", `{}`), response)
		require.Equal(t, `"`+want+`"`, w.failure(t, "mcp__a__say", `{}`), "the connection remains")
	}
}

func TestResultsOfAllShapesAreRead(t *testing.T) {
	t.Parallel()
	const odd = "mcp_unknown_content 1"
	for result, test := range map[string]struct {
		want   string
		failed bool
		quirks string
	}{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`: {want: `"a\nb"`},
		`{"content":[]}`: {want: `""`},
		`{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`:                                {want: `{"n":1}`},
		`{"content":[{"type":"text","text":"made 9007199254740993"}],"structuredContent":{"n":9007199254740993}}`:     {want: `{"n":9007199254740993}`},
		`{"content":[],"structuredContent":{"n":[9007199254740991,0.5,-1,{"n":-9007199254740993}]}}`:                  {want: `{"n":[9007199254740991,0.5,-1,{"n":-9007199254740993}]}`},
		`{"content":[{"type":"image","data":"MTIzNDU=","mimeType":"image/png"}],"structuredContent":{"n":1}}`:         {want: `"[image image/png, 5 bytes, not shown]\n{\"n\":1}"`},
		`{"content":[{"type":"text","text":"a picture:"},{"type":"image","data":"MTIzNDU=","mimeType":"image/png"}]}`: {want: `"a picture:\n[image image/png, 5 bytes, not shown]"`},
		`{"content":[{"type":"audio","data":"MTIz","mimeType":"audio/wav"}]}`:                                         {want: `"[audio audio/wav, 3 bytes, not shown]"`},
		`{"content":[{"type":"resource_link","uri":"file:///a","name":"A","mimeType":"text/plain"}]}`:                 {want: `"[resource file:///a, A, text/plain]"`},
		`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"content"}}]}`:                           {want: `"[resource file:///a]\ncontent"`},
		`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"image/png","blob":"MTI="}}]}`:       {want: `"[resource file:///a, image/png, 2 bytes, not shown]"`},
		`{"content":[{"type":"text","text":"no such file"}],"isError":true}`:                                          {want: `"no such file"`, failed: true},

		`{"content":[{"type":"chart","points":[1,2]}]}`:             {want: `"[content of an unknown type, as JSON]\n{\"type\":\"chart\",\"points\":[1,2]}"`, quirks: odd},
		`{"content":[{"type":"text","text":"a"},{"type":"chart"}]}`: {want: `"a\n[content of an unknown type, as JSON]\n{\"type\":\"chart\"}"`, quirks: odd},
		`{"content":[{"type":"text","text":"a"},7]}`:                {want: `"a\n[content of an unknown type, as JSON]\n7"`, quirks: odd},
		`{"content":{"type":"text","text":"a"}}`:                    {want: `"a"`, quirks: odd},
		`{"content":"a"}`:                                           {want: `"a"`, quirks: odd},
		`{"content":null}`:                                          {want: `""`, quirks: odd},
		`{}`:                                                        {want: `""`, quirks: odd},
		`"a"`:                                                       {want: `"a"`, quirks: odd},
		`null`:                                                      {want: `""`, quirks: odd},
		`[{"type":"text","text":"a"}]`:                              {want: `"a"`, quirks: odd},
		`{"content":[{"type":"text","text":5}]}`:                    {want: `"[content of an unknown type, as JSON]\n{\"type\":\"text\",\"text\":5}"`, quirks: odd},
		`{"content":[{"type":"text","text":"a","annotations":[],"_meta":[]}],"_meta":[]}`: {want: `"a"`},
		`{"content":[{"type":"image","data":"!","mimeType":"image/png"}]}`:                {want: `"[image image/png, 0 bytes, not shown]"`},
		`{"content":[{"type":"image","url":"https://tides.example/a.png"}]}`:              {want: `"[content of an unknown type, as JSON]\n{\"type\":\"image\",\"url\":\"https://tides.example/a.png\"}"`, quirks: odd},
		`{"content":[{"type":"resource","resource":null}]}`:                               {want: `"[content of an unknown type, as JSON]\n{\"type\":\"resource\",\"resource\":null}"`, quirks: odd},
		`{"structuredContent":{"depth":4}}`:                                               {want: `{"depth":4}`},
		`{"content":[],"structuredContent":[1,12345678901234567890]}`:                     {want: `[1,12345678901234567890]`},
		`{"content":"dry","isError":true}`:                                                {want: `"dry"`, failed: true, quirks: odd},
		`{"isError":true,"structuredContent":{"code":4}}`:                                 {want: `"{\"code\":4}"`, failed: true},
		`{"isError":true}`: {want: `"the tool failed without a message"`, failed: true, quirks: odd},
		`{"resultType":"input_required","inputRequests":{"q":{}}}`: {want: `"the tool asks for input, which this client cannot give"`, failed: true},
	} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			w := calling(t, func(r request) string { return line(r.result(result)) })
			got, failed := w.call(deadline(t), "mcp__a__say", `{}`)
			require.Equal(t, test.want, got)
			require.Equal(t, test.failed, failed)
			require.Equal(t, test.quirks, w.quirks(t))
		})
	}
}

// tools returns a list with tools of these names.
func tools(names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, strings.Replace(sayTool, `"say"`, fmt.Sprintf("%q", name), 1))
	}
	return strings.Join(list, ",")
}

func TestAListingEnds(t *testing.T) {
	t.Parallel()
	const endless = "mcp_cursor_repeated 1"
	for name, test := range map[string]struct {
		page   func(cursor string, n int) string // n pages were listed before
		want   string
		pages  int
		quirks string
	}{
		"one page":          {page: func(string, int) string { return `{"tools":[` + tools("b") + `]}` }, want: "b", pages: 1},
		"an empty cursor":   {page: func(string, int) string { return `{"tools":[` + tools("b") + `],"nextCursor":""}` }, want: "b", pages: 1},
		"null as a cursor":  {page: func(string, int) string { return `{"tools":[` + tools("b") + `],"nextCursor":null}` }, want: "b", pages: 1},
		"false as a cursor": {page: func(string, int) string { return `{"tools":[` + tools("b") + `],"nextCursor":false}` }, want: "b", pages: 1, quirks: "mcp_tool_repaired 1"},
		"two pages": {page: func(cursor string, _ int) string {
			if cursor == "p2" {
				return `{"tools":[` + tools("c") + `]}`
			}
			return `{"tools":[` + tools("b") + `],"nextCursor":"p2"}`
		}, want: "b c", pages: 2},
		"the same page again": {page: func(string, int) string { return `{"tools":[` + tools("b", "c") + `],"nextCursor":"p2"}` }, want: "b c", pages: 2, quirks: endless},
		"the cursor comes back": {page: func(cursor string, _ int) string {
			return `{"tools":[],"nextCursor":"` + map[string]string{"": "x", "x": "y", "y": "x"}[cursor] + `"}`
		}, pages: 3, quirks: endless},
		"empty pages": {page: func(cursor string, _ int) string {
			return `{"tools":[` + map[bool]string{true: tools("b")}[cursor == ""] + `],"nextCursor":"p2"}`
		}, want: "b", pages: 2, quirks: endless},
		"a few empty pages": {page: func(_ string, n int) string {
			if n == 2 {
				return `{"tools":[` + tools("b") + `]}`
			}
			return fmt.Sprintf(`{"tools":[],"nextCursor":"p%d"}`, n)
		}, want: "b", pages: 3},
		"no tools": {page: func(string, int) string { return `{"tools":null}` }, pages: 1},
		"fields of other types": {page: func(string, int) string {
			return `{"tools":[{"name":"b","title":[],"description":7,"icons":{},"outputSchema":[],"annotations":[],"_meta":[],"inputSchema":{"type":"object"}},{"name":"c","annotations":{"readOnlyHint":"yes"},"inputSchema":null}],"_meta":[],"ttlMs":"1"}`
		}, want: "b c", pages: 1, quirks: "mcp_schema_repaired 1 mcp_tool_repaired 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pages := 0
			w := raw(t, "", func(r request) string {
				if r.Method == "tools/list" {
					pages++
					return line(r.result(test.page(r.Params.Cursor, pages-1)))
				}
				return line(correct(t, r))
			})
			offered, err := w.offer(deadline(t), "mcp:a/*")
			require.NoError(t, err)
			require.Equal(t, test.want, strings.ReplaceAll(strings.Join(namesOf(offered), " "), "mcp:a/", ""))
			require.Equal(t, test.quirks, w.quirks(t))
			require.Equal(t, test.pages, pages)
		})
	}
}

func TestProgressWithAnotherTypeOfTokenIsReported(t *testing.T) {
	t.Parallel()
	seen := make(chan string)
	w := calling(t, func(r request) string {
		r.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"%s","progress":3}}`+"\n", r.Params.Meta.ProgressToken))
		return line(r.say(<-seen))
	})
	result := w.set.Call(deadline(t), activities.ToolCallRequest{Name: "mcp__a__say", Arguments: json.RawMessage(`{}`), Progress: func(text string) { seen <- text }})
	require.Equal(t, `"3"`, string(result.Value))
}

func TestAnErrorInTheMiddleOfAListingKeepsTheToolsSoFar(t *testing.T) {
	t.Parallel()
	w := raw(t, "", func(r request) string {
		switch {
		case r.Method == "tools/list" && r.Params.Cursor == "":
			return line(r.result(`{"tools":[` + tools("b") + `],"nextCursor":"p2"}`))
		case r.Method == "tools/list":
			return fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32602,\"message\":\"bad cursor\"}}\n", r.ID)
		}
		return line(correct(t, r))
	})
	offered, err := w.offer(deadline(t), "mcp:a/*")
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:a/b"}, namesOf(offered))
	w.log.await(deadline(t), t, `msg="an MCP server did not list all of its tools" server=a error="bad cursor"`)
}

func TestToolsThatCannotBeOfferedAreNamed(t *testing.T) {
	t.Parallel()
	w := raw(t, "", func(r request) string {
		if r.Method == "tools/list" {
			return line(r.result(`{"tools":[` + tools("b", "Tide of *", "") + `,{"name":"sum","inputSchema":{"type":"array","items":{}}},{"name":"b","description":"another b","inputSchema":{}},7]}`))
		}
		if r.Method == "tools/call" {
			return line(r.say(r.Params.Name))
		}
		return line(correct(t, r))
	})
	offered, err := w.set.Offer(deadline(t), offerOf("mcp:a/*"))
	require.NoError(t, err)
	withheld := map[string]string{}
	var names []string
	for _, tool := range offered {
		if tool.Withheld != "" {
			withheld[tool.Canonical] = tool.Withheld
		} else {
			names = append(names, tool.Canonical)
		}
	}
	require.Equal(t, []string{"mcp:a/Tide of _", "mcp:a/b", "read_result"}, names)
	require.Equal(t, map[string]string{
		"mcp:a/":    "it has no name",
		"mcp:a/b":   "another tool of the server has this name",
		"mcp:a/sum": `the input schema is of type "array" (MCP passes arguments as an object)`,
	}, withheld)
	status := w.Status(deadline(t), "a")
	require.Equal(t, 2, status.Tools)
	require.Len(t, status.Withheld, 4)
	require.Equal(t, `"Tide of *"`, w.value(t, mcp.SentName("a", "Tide of *"), `{}`), "the server receives its own name")
}

// breakable is a connection that can break: nothing is written any more.
type breakable struct {
	net.Conn
	isBroken *atomic.Bool
}

func (b breakable) Write(p []byte) (int, error) {
	if b.isBroken.Load() {
		return 0, syscall.EPIPE
	}
	return b.Conn.Write(p)
}

func TestACallThatWasNotWrittenIsMadeOnTheNextConnection(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	s := newServer()
	var calls, connections atomic.Int32
	addTool(s, &sdk.Tool{Name: "t"}, func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls.Add(1)
		return textResult("done")
	})
	var isBroken *atomic.Bool
	w.Dial("a", func() (io.ReadWriteCloser, error) {
		connections.Add(1)
		isBroken = &atomic.Bool{}
		ours, theirs := net.Pipe()
		_, err := s.Connect(t.Context(), &sdk.IOTransport{Reader: theirs, Writer: theirs}, nil)
		return breakable{ours, isBroken}, err
	})
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
	isBroken.Store(true)
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
	require.EqualValues(t, 2, connections.Load())
	require.EqualValues(t, 2, calls.Load())
}
