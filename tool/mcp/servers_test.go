package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// files is a server of this process with some tools.
func files(t *testing.T) (*worker, *sdk.Server) {
	w := newWorker(t, nil, mcp.Server{Name: "files", Command: "unused"}, mcp.Server{Name: "docs", Command: "unused"})
	f := newServer()
	addTool(f, &sdk.Tool{Name: "write", Description: "Write a file", InputSchema: map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
		"properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []any{"path"},
	}}, returns("written"))
	addTool(f, &sdk.Tool{Name: "read", Description: "Read a file", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, returns("content"))
	addTool(f, &sdk.Tool{Name: "touch", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}}, returns("touched"))
	w.inMemory(t, "files", f)
	d := newServer()
	addTool(d, &sdk.Tool{Name: "read", Description: "Read a page"}, returns("a page"))
	w.inMemory(t, "docs", d)
	return w, f
}

func TestContextsUseTheToolsTheyName(t *testing.T) {
	t.Parallel()
	w, _ := files(t)
	for _, test := range []struct {
		patterns string
		want     string
	}{
		{"mcp:files/*", "mcp:files/read mcp:files/touch mcp:files/write"},
		{"mcp:files/read", "mcp:files/read"},
		{"mcp:*/read", "mcp:docs/read mcp:files/read"},
		{"mcp:files/w* mcp:docs/*", "mcp:files/write mcp:docs/read"},
		{"mcp:*", "mcp:docs/read mcp:files/read mcp:files/touch mcp:files/write"},
	} {
		offered, err := w.offer(deadline(t), strings.Fields(test.patterns)...)
		require.NoError(t, err)
		require.Equal(t, strings.Fields(test.want), namesOf(offered), test.patterns)
	}
}

func TestAnUnknownServerIsAnErrorOfTheRequest(t *testing.T) {
	t.Parallel()
	w, _ := files(t)
	_, err := w.offer(deadline(t), "mcp:fiels/read")
	var failed *activities.ModelError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, event.FailureBadRequest, failed.Failure)
	require.False(t, failed.Retryable)
	require.EqualError(t, err, `tools of context demo: no MCP server matches "mcp:fiels/read" (this worker has files, docs; want mcp:SERVER/TOOL)`)
}

func TestAToolThatAServerLacksIsNotOffered(t *testing.T) {
	t.Parallel()
	w, _ := files(t)
	offered, err := w.offer(deadline(t), "mcp:files/read", "mcp:files/remove")
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:files/read"}, namesOf(offered))
}

func TestToolsAreDescribedToModels(t *testing.T) {
	t.Parallel()
	w, _ := files(t)
	offered, err := w.offer(deadline(t), "mcp:files/*")
	require.NoError(t, err)
	read, touch, write := offered[0], offered[1], offered[2]
	require.Equal(t, "mcp__files__write", write.Name)
	require.Equal(t, "Write a file", write.Description)
	require.JSONEq(t, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`, string(write.Parameters))
	require.False(t, write.Idempotent, "a call without hints may have effects")
	require.Equal(t, 1, write.Attempts)
	require.True(t, read.Idempotent, "a tool that only reads may be repeated")
	require.True(t, touch.Idempotent)
	require.Equal(t, 3, touch.Attempts)
	require.Equal(t, "Tool touch of the MCP server files", touch.Description)
	require.JSONEq(t, `{"type":"object","properties":{}}`, string(touch.Parameters))
}

func TestTheTextsOfServersAreCleanedAndBounded(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	s := newServer()
	addTool(s, &sdk.Tool{Name: "t", Description: "Adds\x1b[31m\u202e numbers\U000E0041\U000E0042.\n" + strings.Repeat("x", 2*event.MaxDescriptionBytes), InputSchema: map[string]any{
		"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number", "description": "a\u200b number\x07"}},
	}}, returns(""))
	addTool(s, &sdk.Tool{Name: "huge", InputSchema: map[string]any{
		"type": "object", "properties": map[string]any{"n": map[string]any{"description": strings.Repeat("x", event.MaxSchemaBytes)}},
	}}, returns(""))
	addTool(s, &sdk.Tool{Name: "endless", InputSchema: map[string]any{"type": "object", "allOf": []any{map[string]any{"$ref": "#"}}}}, returns(""))
	w.inMemory(t, "a", s)
	offered, err := w.offer(deadline(t), "mcp:a/*")
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:a/t"}, namesOf(offered), "tools that cannot be offered are left out")
	require.True(t, strings.HasPrefix(offered[0].Description, "Adds[31m numbers.\nxxx"))
	require.LessOrEqual(t, len(offered[0].Description), event.MaxDescriptionBytes)
	require.JSONEq(t, `{"type":"object","properties":{"n":{"type":"number","description":"a number"}}}`, string(offered[0].Parameters))
	for _, name := range []string{"huge", "endless"} {
		require.Contains(t, w.log.String(), `msg="a tool of an MCP server is not offered" server=a tool=`+name+" error=")
	}
}

func TestAServerOffersABoundedNumberOfTools(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	s := newServer()
	for i := range 200 {
		addTool(s, &sdk.Tool{Name: "t" + strings.Repeat("x", i%50) + string(rune('a'+i/50))}, returns(""))
	}
	w.inMemory(t, "a", s)
	offered, err := w.offer(deadline(t), "mcp:a/*")
	require.NoError(t, err)
	require.Len(t, offered, 127)
}

func TestTheServerReceivesTheArguments(t *testing.T) {
	t.Parallel()
	w := inProcess(t, "t.u", func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return textResult(r.Params.Name + " " + string(r.Params.Arguments))
	})
	require.Equal(t, `"t.u {\"n\":12345678901234567890}"`, w.value(t, mcp.SentName("a", "t.u"), `{"n":12345678901234567890}`))
}

func TestAnErrorOfTheProtocolIsAResult(t *testing.T) {
	t.Parallel()
	w := inProcess(t, "t", func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("out of order\x1b[1m")
	})
	require.Equal(t, `"MCP server a: out of order"`, w.failure(t, "mcp__a__t", `{}`))
}

func TestACallOfAToolThatIsGoneIsAnErrorResult(t *testing.T) {
	t.Parallel()
	w, _ := files(t)
	require.Equal(t, `"MCP server files has no tool mcp__files__remove any more"`, w.failure(t, "mcp__files__remove", `{}`))
	require.Equal(t, `"this worker has no tool mcp__other__read"`, w.failure(t, "mcp__other__read", `{}`))
}

func TestProgressOfACallIsReported(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	s := newServer()
	seen := make(chan struct{})
	s.AddTool(&sdk.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, p := range []sdk.ProgressNotificationParams{{Progress: 1}, {Progress: 2, Total: 4, Message: "half\x07way"}} {
			p.ProgressToken = r.Params.GetProgressToken()
			if err := r.Session.NotifyProgress(ctx, &p); err != nil {
				return nil, err
			}
		}
		<-seen
		return textResult("done")
	})
	w.inMemory(t, "a", s)
	var reported []string
	result := w.set.Call(deadline(t), activities.ToolCallRequest{Name: "mcp__a__t", Arguments: json.RawMessage(`{}`), Progress: func(text string) {
		if reported = append(reported, text); len(reported) == 2 {
			close(seen)
		}
	}})
	require.Equal(t, `"done"`, string(result.Value))
	require.Equal(t, []string{"1", "halfway (2/4)"}, reported)
}

func TestAChangedListIsOffered(t *testing.T) {
	t.Parallel()
	w, f := files(t)
	ctx := deadline(t)
	_, err := w.offer(ctx, "mcp:files/*")
	require.NoError(t, err)
	addTool(f, &sdk.Tool{Name: "append"}, returns("appended"))
	f.RemoveTools("touch")
	require.NoError(t, w.AwaitList(ctx, "files", func(names []string) bool {
		return strings.Join(names, " ") == "mcp:files/append mcp:files/read mcp:files/write"
	}))
	next, err := w.offer(ctx, "mcp:files/*")
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:files/append", "mcp:files/read", "mcp:files/write"}, namesOf(next))
	require.Equal(t, `"MCP server files has no tool mcp__files__touch any more"`, w.failure(t, "mcp__files__touch", `{}`))
}

func TestAServerThatFailsKeepsItsToolsAndIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	s := newServer()
	addTool(s, &sdk.Tool{Name: "t"}, returns("done"))
	sessions := make(chan *sdk.ServerSession, 100)
	isDown := make(chan bool, 1)
	isDown <- false
	w.Dial("a", func() (io.ReadWriteCloser, error) {
		down := <-isDown
		isDown <- down
		if down {
			return nil, errors.New("out of memory")
		}
		ours, theirs := net.Pipe()
		session, err := s.Connect(t.Context(), &sdk.IOTransport{Reader: theirs, Writer: theirs}, nil)
		sessions <- session
		return ours, err
	})
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
	<-isDown
	isDown <- true
	require.NoError(t, (<-sessions).Close())
	w.log.await(deadline(t), t, "out of memory")
	require.Equal(t, `"MCP server a is unavailable: out of memory (the call was not made)"`, w.failure(t, "mcp__a__t", `{}`))
	offered, err := w.offer(deadline(t), "mcp:a/*")
	require.NoError(t, err)
	require.Equal(t, []string{"mcp:a/t"}, namesOf(offered))
	<-isDown
	isDown <- false
	ctx := deadline(t)
	for w.AwaitConnected(ctx, "a") != nil {
		require.NoError(t, ctx.Err()) // a start that has begun before may still fail
	}
	require.Equal(t, `"done"`, w.value(t, "mcp__a__t", `{}`))
}

func TestTheToolsOfAServerThatNeverRanAreWithheld(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"}, mcp.Server{Name: "b", Command: "unused"})
	w.Dial("a", func() (io.ReadWriteCloser, error) { return nil, errors.New("out of memory at 10.0.0.7:41234") })
	b := newServer()
	addTool(b, &sdk.Tool{Name: "read"}, returns("content"))
	w.inMemory(t, "b", b)
	for _, test := range []struct {
		patterns, want string
	}{
		{"mcp:a/t mcp:* mcp:other-*/t", "mcp:a/* mcp:a/t"},
		{"mcp:a/* mcp:b/read mcp:*/write", "mcp:a/* mcp:a/write"},
		{"mcp:b/read mcp:b*", ""},
	} {
		offered, err := w.set.Offer(deadline(t), offerOf(strings.Fields(test.patterns)...))
		require.NoError(t, err)
		var withheld []string
		for _, tool := range offered {
			if tool.Withheld != "" {
				withheld = append(withheld, tool.Canonical)
				require.Equal(t, "the MCP server is unavailable", tool.Withheld, "the same in all turns, for the hash of a ToolsOffered")
			}
		}
		require.Equal(t, test.want, strings.Join(withheld, " "), test.patterns)
	}
	require.Contains(t, w.log.String(), `msg="the tools of an MCP server are not offered" server=a context=demo error="out of memory at 10.0.0.7:41234"`)
	require.Equal(t, `"MCP server a is unavailable: out of memory at 10.0.0.7:41234 (the call was not made)"`, w.failure(t, "mcp__a__t", `{}`))
}

func TestClosedServersAreNotStarted(t *testing.T) {
	t.Parallel()
	w := newWorker(t, nil, mcp.Server{Name: "a", Command: "unused"})
	w.Dial("a", func() (io.ReadWriteCloser, error) { t.Error("started"); return nil, errors.New("started") })
	w.Close()
	w.Start()
	require.Equal(t, `"MCP server a is unavailable: the worker is stopping (the call was not made)"`, w.failure(t, "mcp__a__t", `{}`))
}
