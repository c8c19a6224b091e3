package a2a_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBadInputHasTheShapeOfTheProtocol(t *testing.T) {
	s := start(t, nil, echo)
	sent := s.send(user("demo", "m1", "Hello"))
	message := func(change func(m map[string]any)) map[string]any {
		m := map[string]any{"messageId": "m2", "contextId": "demo", "role": "ROLE_USER", "parts": []any{map[string]any{"text": "Hi"}}}
		change(m)
		return map[string]any{"message": m}
	}
	configured := func(config map[string]any) map[string]any {
		in := message(func(map[string]any) {})
		in["configuration"] = config
		return in
	}
	part := func(p map[string]any) map[string]any {
		return message(func(m map[string]any) { m["parts"] = []any{p} })
	}
	for _, test := range []struct {
		name, method string
		params       any
		code         int
		text         string
	}{
		{"no method", "Nonsense", map[string]any{}, -32601, "Nonsense"},
		{"no object", "SendMessage", 7, -32602, "wrong type"},
		{"no message", "SendMessage", map[string]any{}, -32602, "message is missing"},
		{"no id", "SendMessage", message(func(m map[string]any) { delete(m, "messageId") }), -32602, "messageId has 0 bytes"},
		{"a long id", "SendMessage", message(func(m map[string]any) { m["messageId"] = strings.Repeat("x", 121) }), -32602, "121 bytes"},
		{"an agent", "SendMessage", message(func(m map[string]any) { m["role"] = "ROLE_AGENT" }), -32602, "want ROLE_USER"},
		{"a wrong type", "SendMessage", message(func(m map[string]any) { m["parts"] = "Hi" }), -32602, "message.parts has the wrong type"},
		{"no parts", "SendMessage", message(func(m map[string]any) { m["parts"] = []any{} }), -32602, "0 parts"},
		{"an invalid name", "SendMessage", message(func(m map[string]any) { m["contextId"] = "a b" }), -32602, "a name has"},
		{"an empty part", "SendMessage", part(map[string]any{}), -32602, "part 0 has neither"},
		{"data", "SendMessage", part(map[string]any{"data": map[string]any{"a": 1}}), -32005, "data part"},
		{"an invalid URL", "SendMessage", part(map[string]any{"url": "ftp://example.com"}), -32602, "http"},
		{"an invalid media type", "SendMessage", part(map[string]any{"url": "https://example.com", "mediaType": "text"}), -32602, "mediaType"},
		{"a used id", "SendMessage", message(func(m map[string]any) { m["messageId"] = "m1" }), -32602, "was used for other events"},
		{"a foreign reference", "SendMessage", message(func(m map[string]any) { m["referenceTaskIds"] = []string{"other:0001"} }), -32602, "not in the context"},
		{"a tenant", "SendMessage", func() any { in := message(func(map[string]any) {}); in["tenant"] = "acme"; return in }(), -32602, "tenant"},
		{"a tenant", "GetTask", map[string]any{"tenant": "acme", "id": sent.ID}, -32602, "tenant"},
		{"an unknown task", "SendMessage", message(func(m map[string]any) { m["taskId"] = "demo:0099" }), -32001, "demo:0099"},
		{"an ended task", "SendMessage", message(func(m map[string]any) { m["taskId"] = sent.ID }), -32004, "TASK_STATE_COMPLETED"},
		{"only images", "SendMessage", configured(map[string]any{"acceptedOutputModes": []string{"image/png"}}), -32005, "text/plain"},
		{"a webhook", "SendMessage", configured(map[string]any{"taskPushNotificationConfig": map[string]any{"url": "http://169.254.169.254"}}), -32003, "webhooks"},
		{"a negative history", "SendMessage", configured(map[string]any{"historyLength": -1}), -32602, "historyLength is -1"},
		{"no task", "GetTask", map[string]any{}, -32001, ""},
		{"a task of no context", "GetTask", map[string]any{"id": "missing:0001"}, -32001, "missing:0001"},
		{"an event that is no task", "GetTask", map[string]any{"id": "demo:0001"}, -32001, ""},
		{"a task of no name", "GetTask", map[string]any{"id": "a b:0001"}, -32001, ""},
		{"a negative history", "GetTask", map[string]any{"id": sent.ID, "historyLength": -1}, -32602, "historyLength"},
		{"a resumed task of the future", "SubscribeToTask", map[string]any{"id": "demo:0099"}, -32001, ""},
		{"a resumed task that ended", "SubscribeToTask", map[string]any{"id": sent.ID}, -32004, ""},
		{"a canceled task that ended", "CancelTask", map[string]any{"id": sent.ID}, -32002, ""},
		{"an unknown task", "CancelTask", map[string]any{"id": "x"}, -32001, ""},
		{"a list of all contexts", "ListTasks", map[string]any{}, -32602, "contextId is missing"},
		{"a large page", "ListTasks", map[string]any{"contextId": "demo", "pageSize": 101}, -32602, "pageSize"},
		{"an unknown page", "ListTasks", map[string]any{"contextId": "demo", "pageToken": "x"}, -32602, "pageToken"},
		{"an unknown state", "ListTasks", map[string]any{"contextId": "demo", "status": "TASK_STATE_RUNNING"}, -32602, "TASK_STATE_RUNNING"},
		{"no time", "ListTasks", map[string]any{"contextId": "demo", "statusTimestampAfter": "yesterday"}, -32602, "ISO 8601"},
		{"a webhook", "CreateTaskPushNotificationConfig", map[string]any{"taskId": sent.ID}, -32003, ""},
		{"webhooks", "ListTaskPushNotificationConfigs", map[string]any{"taskId": sent.ID}, -32003, ""},
		{"an extended card", "GetExtendedAgentCard", map[string]any{}, -32004, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, e := s.post(t, map[string]any{"jsonrpc": "2.0", "id": "call-7", "method": test.method, "params": test.params}, "1.0")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, `"call-7"`, string(e.ID))
			require.Equal(t, test.code, e.Error.Code, "%s %s", e.Error.Message, e.Result)
			require.Contains(t, e.Error.Message, test.text)
			require.Equal(t, "type.googleapis.com/google.rpc.ErrorInfo", e.Error.Data[0]["@type"])
		})
	}
	for _, test := range []struct {
		name    string
		body    any
		version string
		code    int
	}{
		{"no JSON", json.RawMessage(`{`), "1.0", -32700},
		{"a list", []any{}, "1.0", -32600},
		{"no id", map[string]any{"jsonrpc": "2.0", "method": "GetTask"}, "1.0", -32600},
		{"other JSON-RPC", map[string]any{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}, "1.0", -32600},
		{"an old version", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "message/send"}, "0.3", -32009},
		{"no version", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "message/send"}, "", -32009},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, e := s.post(t, test.body, test.version)
			require.Equal(t, test.code, e.Error.Code, e.Error.Message)
		})
	}
	push := s.run(command{Method: "createTaskPushNotificationConfig", Params: map[string]any{"taskId": sent.ID, "url": "http://169.254.169.254"}})
	require.Equal(t, "PushNotificationNotSupportedError", push.Error.Name)
	require.Equal(t, []string{"You said Hi"}, s.send(user("demo", "m9", "Hi")).texts(), "the context goes on")
}

type rpcFailure struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  struct {
		Code    int              `json:"code"`
		Message string           `json:"message"`
		Data    []map[string]any `json:"data"`
	} `json:"error"`
}

func (s *stack) post(t *testing.T, body any, version string) (status int, e rpcFailure) {
	t.Helper()
	data, ok := body.(json.RawMessage)
	if !ok {
		var err error
		data, err = json.Marshal(body)
		require.NoError(t, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.urls[0]+"/a2a/", bytes.NewReader(data))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("A2A-Version", version)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&e))
	return response.StatusCode, e
}
