package a2a_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

func TestToolsOfWorkersAndClients(t *testing.T) {
	type word struct {
		Word string `json:"word"`
	}
	lookUp := func(ctx context.Context, w word) (string, error) {
		tool.Progress(ctx, "page 1 of 2")
		return "a small " + w.Word, nil
	}
	tools, err := tool.NewSet(tool.Options{}, tool.Must(tool.New("look_up", "Look a word up", lookUp)))
	require.NoError(t, err)
	s := start(t, tools, func(r llmtest.Request) llmtest.Step {
		if results := r.Results(); len(results) > 0 {
			return llmtest.Answer("Result: ", strings.Join(results, ", "))
		}
		call := map[string]llmtest.Call{
			"look": {ID: "call_1", Name: "look_up", Arguments: `{"word":"cat"}`},
			"ask":  {ID: "call_2", Name: "ask_user", Arguments: `{"question":"Blue?"}`},
			"err":  {ID: "call_3", Name: "ask_user", Arguments: `{}`},
		}[r.LastUser()]
		return llmtest.Calls(call)
	})
	approving := event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}, Approve: event.ApprovalRules{{Tool: "look_up"}}}

	t.Run("of a worker", func(t *testing.T) {
		s.record("worker", event.SetTools{Tools: event.ToolList{{Pattern: "look_up"}}})
		r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("worker", "m1", "look")}})
		require.Empty(t, r.Error)
		require.Equal(t, []string{
			"USER: look", `AGENT: {"toolCallId":"call_1","name":"look_up","arguments":{"word":"cat"}}`, `AGENT: {"toolCallId":"call_1","result":"a small cat"}`,
		}, r.Task.said())
		require.Equal(t, []string{"Result: a small cat"}, r.Task.texts())
		s.requireSameForAll(r.Task)
	})

	t.Run("of a client", func(t *testing.T) {
		s.record("client", event.SetTools{Tools: event.ToolList{{Name: "ask_user", Description: "Ask", Parameters: event.Object(`{"type":"object"}`)}}})
		r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": user("client", "m1", "ask")}})
		require.Empty(t, r.Error)
		require.Equal(t, "TASK_STATE_INPUT_REQUIRED", r.Task.Status.State, "the stream ends there")
		require.Contains(t, r.Task.why(), `ask_user {"question":"Blue?"} waits for a result`)
		s.requireSameForAll(r.Task)
		s.begin(command{Call: "other", Gateway: 1, Method: "resubscribeTask", Params: map[string]any{"id": r.Task.ID}})
		reply := user("", "m2", "Yes")
		reply.TaskID = r.Task.ID
		answered := s.send(reply)
		require.Equal(t, "TASK_STATE_COMPLETED", answered.Status.State)
		require.Equal(t, []string{"Result: Yes"}, answered.texts())
		require.Equal(t, `USER: {"toolCallId":"call_2","result":"Yes"}`, answered.said()[len(answered.said())-1])
		require.Equal(t, []string{"Result: Yes"}, s.end("other").Task.texts(), "a subscriber sees what follows the input")
		require.Equal(t, answered, s.send(reply), "a repeated reply is not sent again")
		s.requireSameForAll(answered)
		late := reply
		late.MessageID = "m3"
		require.Equal(t, "UnsupportedOperationError", s.run(command{Method: "sendMessage", Params: map[string]any{"message": late}}).Error.Name)
	})

	t.Run("of a client, for which a worker answers", func(t *testing.T) {
		s.record("invalid", event.SetTools{Tools: event.ToolList{{Name: "ask_user", Parameters: event.Object(`{"type":"object","required":["question"]}`)}}})
		for call, method := range map[string]string{"m1": "sendMessageStream", "m2": "sendMessage"} {
			r := s.run(command{Method: method, Params: map[string]any{"message": user("invalid", call, "err")}})
			require.Equal(t, "TASK_STATE_COMPLETED", r.Task.Status.State, "the arguments are invalid")
		}
	})

	data := func(text string) []part { return []part{{Data: json.RawMessage(text)}} }
	for _, test := range []struct {
		name   string
		reply  []part
		result string
	}{
		{"approved", []part{{Text: "Approve"}}, "Result: a small cat"},
		{"edited", data(`{"toolCallId":"call_1","decision":"approve","arguments":{"word":"dog"}}`), "Result: a small dog"},
		{"denied", []part{{Text: "deny not now"}}, "not now"},
		{"denied-with-data", data(`{"decision":"deny","reason":"not today"}`), "not today"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.record(test.name, approving)
			asked := s.send(user(test.name, "m1", "look"))
			require.Equal(t, "TASK_STATE_INPUT_REQUIRED", asked.Status.State)
			require.Contains(t, asked.why(), "waits for a decision")
			s.requireSameForAll(asked)
			reply := message{MessageID: "m2", ContextID: test.name, TaskID: asked.ID, Role: "ROLE_USER", Parts: test.reply}
			r := s.run(command{Method: "sendMessageStream", Params: map[string]any{"message": reply}})
			require.Empty(t, r.Error)
			require.Equal(t, "TASK_STATE_COMPLETED", r.Task.Status.State)
			require.Contains(t, strings.Join(r.Task.texts(), "\n"), test.result)
			s.requireSameForAll(r.Task)
		})
	}

	t.Run("canceled", func(t *testing.T) {
		s.record("canceled", approving)
		asked := s.send(user("canceled", "m1", "look"))
		canceled := s.task("cancelTask", map[string]any{"id": asked.ID})
		require.Equal(t, "TASK_STATE_CANCELED", canceled.Status.State)
		s.requireSameForAll(canceled)
	})

	t.Run("a bad reply leaves the task waiting", func(t *testing.T) {
		s.record("bad", approving)
		asked := s.send(user("bad", "m1", "look"))
		for name, reply := range map[string]message{
			"no decision":     {Parts: []part{{Text: "Perhaps"}}},
			"a foreign call":  {Parts: data(`{"toolCallId":"call_9","decision":"approve"}`)},
			"no object":       {Parts: data(`7`)},
			"other context":   {ContextID: "other", Parts: []part{{Text: "approve"}}},
			"a used id":       {MessageID: "m1", Parts: []part{{Text: "approve"}}},
			"a bad decision":  {Parts: data(`{"decision":"maybe"}`)},
			"a misspelling":   {Parts: data(`{"decision":"approve","argument":{"word":"dog"}}`)},
			"other arguments": {Parts: data(`{"decision":"approve","arguments":[1]}`)},
		} {
			reply.TaskID, reply.Role = asked.ID, "ROLE_USER"
			if reply.MessageID == "" {
				reply.MessageID = "reply"
			}
			r := s.run(command{Method: "sendMessage", Params: map[string]any{"message": reply}})
			require.Equal(t, "RequestMalformedError", r.Error.Name, "%s: %s", name, r.Error.Message)
		}
		file := message{MessageID: "m2", TaskID: asked.ID, Role: "ROLE_USER", Parts: []part{{URL: "https://example.com"}}}
		require.Equal(t, "ContentTypeNotSupportedError", s.run(command{Method: "sendMessage", Params: map[string]any{"message": file}}).Error.Name)
		s.requireSameForAll(asked)
	})
}
