package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/a2a"
	"github.com/seed-9ed7edd4/chronicle/gateway/aisdk"
	"github.com/seed-9ed7edd4/chronicle/gateway/openai"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// thatKnows makes the context accept only input that it has already; isRecorded: a worker says so.
func thatKnows(log *log, isRecorded bool) {
	log.send = func(events []event.Event) (sent client.Receipt, err error) {
		for _, e := range events {
			sent.ClientEventIDs = append(sent.ClientEventIDs, e.ClientEventID)
			recorded, _, err := log.Snapshot()
			if err != nil {
				return sent, err
			}
			for _, known := range recorded {
				if known.ClientEventID == e.ClientEventID && isRecorded {
					sent.EventIDs = append(sent.EventIDs, known.ID)
				}
			}
		}
		return sent, nil
	}
}

func postKeyed(t *testing.T, w *webServer, path, body string) (status int, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	response, err := w.server.Client().Do(w.request(http.MethodPost, path, body, "Idempotency-Key", "k").WithContext(ctx))
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(data)
}

// A repeated message gets its answer, also while the context answers another one, and without a worker.
func TestAProtocolFindsTheAnswerToARepeatedRequest(t *testing.T) {
	for _, test := range []struct {
		name, path, body string
		protocol         gateway.Protocol
		isRecorded       bool
	}{
		{"aisdk", "/api/chat", `{"id":"demo","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"one"}]}],"trigger":"submit-message"}`, aisdk.Protocol(), true},
		{"aisdk without a worker", "/api/chat", `{"id":"demo","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"one"}]}],"trigger":"submit-message"}`, aisdk.Protocol(), false},
		{"openai", "/v1/responses", `{"conversation":"demo","input":"one"}`, openai.Protocol(), true},
		{"openai without a worker", "/v1/responses", `{"conversation":"demo","input":"one"}`, openai.Protocol(), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := newLog(event.SessionStarted{})
			w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{test.protocol}})
			ask := func() string {
				status, answer := postKeyed(t, w, test.path, test.body)
				require.Equal(t, http.StatusOK, status, answer)
				return answer
			}
			thatAnswers(log, event.LLMRequestStarted{RequestID: "demo:r0001", ThroughEventID: eventID(2), Attempt: 1}, event.AssistantMessage{RequestID: "demo:r0001", Content: "first"}, event.LLMRequestCompleted{RequestID: "demo:r0001"})
			require.Contains(t, ask(), "first")
			thatKnows(log, test.isRecorded)
			log.record(event.UserMessage{Content: "two"}, event.LLMRequestStarted{RequestID: "demo:r0002", ThroughEventID: eventID(6), Attempt: 1})
			require.Contains(t, ask(), "first")
		})
	}
}

// A key that is used again for another request names the context of the first one.
func TestARejectedRequestLeavesTheContextOfAnotherOne(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"store":false,"messages":[{"role":"user","content":"two"}]}`,
		"/v1/responses":        `{"store":false,"input":"two"}`,
	} {
		log := newLogOf("resp-qjkmgknjfbipnvjz3u3w6saw5ytwiul5", event.SessionStarted{}, event.UserMessage{Content: "one"})
		log.send = func([]event.Event) (client.Receipt, error) { return client.Receipt{}, client.ErrKeyReused }
		w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{openai.Protocol()}})
		status, answer := postKeyed(t, w, path, body)
		require.Equal(t, http.StatusUnprocessableEntity, status, answer)
		require.Len(t, log.sent, 1)
		require.Empty(t, log.calls, path)
	}
}

// A response ends as long as results of other calls are missing.
func TestAResponseToSomeResultsOfAConversationEnds(t *testing.T) {
	call := func(id string) event.ToolCall {
		return event.ToolCall{RequestID: "demo:r0001", ToolCallID: id, ToolName: "ask"}
	}
	log := newLog(
		event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: event.Object(`{}`)}}}, event.UserMessage{Content: "Hi"},
		event.LLMRequestStarted{RequestID: "demo:r0001", ThroughEventID: eventID(2), Attempt: 1}, call("c1"), call("c2"), call("c3"),
		event.LLMAttemptEnded{RequestID: "demo:r0001", Attempt: 1, Outcome: event.AttemptToolCalls},
	)
	for _, id := range []string{"c1", "c2", "c3"} {
		log.waits = append(log.waits, reducer.Call{ID: id, State: reducer.CallClient})
	}
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{openai.Protocol()}})
	status, answer := postKeyed(t, w, "/v1/responses", `{"conversation":"demo","input":[{"type":"function_call_output","call_id":"c1","output":"1"}]}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, `"status":"completed"`)
	status, answer = postKeyed(t, w, "/v1/responses", `{"previous_response_id":"resp_demo_0008","input":[{"type":"function_call_output","call_id":"c2","output":"2"}]}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, `"id":"resp_demo_0009","object":"response"`)
	require.Contains(t, answer, `"status":"completed"`)
}

// Another client may have sent the result of the call.
func TestAReplyThatTheContextRejectsIsNoLongerAwaited(t *testing.T) {
	const requestID = "demo:r0001"
	log := newLog(event.SetTools{Tools: event.ToolList{{Name: "ask", Parameters: event.Object(`{}`)}}}, event.UserMessage{Content: "Hi"},
		event.LLMRequestStarted{RequestID: requestID, ThroughEventID: "demo:0002", Attempt: 1}, event.AssistantMessage{RequestID: requestID},
		event.ToolCall{RequestID: requestID, ToolCallID: "c1", ToolName: "ask"}, event.LLMAttemptEnded{RequestID: requestID, Attempt: 1, Outcome: event.AttemptToolCalls})
	log.send = func(events []event.Event) (client.Receipt, error) { // no worker records it at once
		rejected := event.New(event.InputRejected{Reason: "c1 has a result"})
		rejected.ClientEventID = events[0].ClientEventID
		log.Record(rejected)
		return client.Receipt{ClientEventIDs: []string{events[0].ClientEventID}}, nil
	}
	w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: a2a.Protocols(a2a.Options{})})
	_, answer := postKeyed(t, w, "/a2a/?A2A-Version=1.0", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{`+
		`"configuration":{"returnImmediately":true},"message":{"taskId":"demo:0002","messageId":"m1","role":"ROLE_USER","parts":[{"text":"blue"}]}}}`)
	require.Contains(t, answer, "c1 has a result")
}

// Two requests with one key may find that their context does not exist.
func TestARequestWithAUsedKeyEndsNoContext(t *testing.T) {
	sum := sha256.Sum256([]byte("k"))
	test := func(path, body string, isAtOnce bool) {
		t.Run(fmt.Sprint(path, isAtOnce), func(t *testing.T) {
			log := newLogOf("resp-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20])))
			log.send = func(events []event.Event) (client.Receipt, error) {
				rejected := event.New(event.InputRejected{Reason: event.KeyReused})
				rejected.ClientEventID = events[0].ClientEventID
				log.Record(event.New(event.UserMessage{Content: "of the other request"}), rejected)
				if isAtOnce {
					return client.Receipt{}, client.Refused(event.KeyReused)
				}
				return client.Receipt{ClientEventIDs: []string{events[0].ClientEventID}}, nil
			}
			w := serve(t, fakeClient{log: log}, gateway.Options{Protocols: []gateway.Protocol{openai.Protocol()}})
			status, answer := postKeyed(t, w, path, body)
			require.Equal(t, http.StatusUnprocessableEntity, status, answer)
			require.Empty(t, log.calls)
		})
	}
	for _, isAtOnce := range []bool{true, false} {
		test("/v1/responses", `{"input":"one"}`, isAtOnce)
		test("/v1/chat/completions", `{"messages":[{"role":"user","content":"one"}],"store":false}`, isAtOnce)
	}
}
