package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const maxMessageBytes = 16 << 20

// wire makes messages of a server acceptable to the SDK, which ends the connection at the first one that it
// cannot decode: https://github.com/modelcontextprotocol/go-sdk/issues/1209.
type wire struct {
	quirk func(kind string)

	mu   sync.Mutex
	sent map[int64]string // methods of the requests without a response, by id
}

// Kinds of deviations, for [Options.OnQuirk].
const (
	quirkNoise     = "mcp_stdout_noise"       // a line that is no message
	quirkID        = "mcp_id_type"            // an id of another type
	quirkVersion   = "mcp_protocol_version"   // an unknown protocol version
	quirkTool      = "mcp_tool_repaired"      // a tool with fields of other types, or another name
	quirkSchema    = "mcp_schema_repaired"    // a schema that is not a JSON Schema of an object
	quirkCursor    = "mcp_cursor_repeated"    // a listing without an end
	quirkContent   = "mcp_unknown_content"    // a result that is not as specified
	quirkStream    = "mcp_stream_reconnected" // the event stream of an HTTP server ended
	quirkNotice    = "mcp_notice_rejected"    // an HTTP server rejected a notification
	quirkSessionID = "mcp_session_status"     // an expired session without the status 404
)

// write notes a message to the server, and returns the id of a request; 0: none.
func (w *wire) write(m jsonrpc.Message) int64 {
	request, isRequest := m.(*jsonrpc.Request)
	if !isRequest {
		return 0
	}
	id, isCall := request.ID.Raw().(int64)
	switch {
	case isCall:
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.sent == nil {
			w.sent = map[int64]string{}
		}
		w.sent[id] = request.Method
	case request.Method == "notifications/cancelled":
		var cancelled struct{ RequestID int64 }
		_ = json.Unmarshal(request.Params, &cancelled)
		w.take(cancelled.RequestID)
	}
	return id
}

// take returns the method of a request, which has no response yet, and forgets it; "": none.
func (w *wire) take(id int64) (method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	method = w.sent[id]
	delete(w.sent, id)
	return method
}

// fail returns an error as the response to a request; nil if it has one.
func (w *wire) fail(id int64, reason string) jsonrpc.Message {
	if w.take(id) == "" {
		return nil
	}
	return &jsonrpc.Response{ID: messageID(id), Error: &jsonrpc.Error{Code: codeTransport, Message: reason}}
}

// failAll returns errors as the responses to all requests.
func (w *wire) failAll(reason string) (responses []jsonrpc.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.sent {
		responses = append(responses, &jsonrpc.Response{ID: messageID(id), Error: &jsonrpc.Error{Code: codeTransport, Message: reason}})
	}
	clear(w.sent)
	return responses
}

type envelope struct {
	JSONRPC, ID, Params, Result, Error json.RawMessage

	Method string
}

// read returns the message at the end of a text, nil if it answers no request, and the other text. A response without
// a known id belongs to the request with the id call, if it is not 0.
func (w *wire) read(text []byte, call int64) (_ jsonrpc.Message, noise []byte) {
	for _, begin := range []string{"{", `{"jsonrpc"`} {
		var m envelope
		at := bytes.Index(text, []byte(begin))
		if at >= 0 && json.Unmarshal(text[at:], &m) == nil && m.JSONRPC != nil {
			return w.message(m, call), text[:at]
		}
	}
	return nil, text
}

func (w *wire) message(m envelope, call int64) jsonrpc.Message {
	if m.Method != "" {
		request := &jsonrpc.Request{Method: m.Method}
		if isObject(m.Params) {
			request.Params = m.Params
		}
		var id any
		_ = json.Unmarshal(m.ID, &id)
		request.ID, _ = jsonrpc.MakeID(id)
		return request
	}
	id := idOf(m.ID)
	method := w.take(id)
	if method == "" && call != 0 {
		id, method = call, w.take(call)
	}
	if method == "" {
		return nil
	}
	if !isEmpty(m.ID) && string(m.ID) != strconv.FormatInt(id, 10) {
		w.quirk(quirkID)
	}
	if !isEmpty(m.Error) {
		return &jsonrpc.Response{ID: messageID(id), Error: errorOf(m.Error)}
	}
	return &jsonrpc.Response{ID: messageID(id), Result: w.result(method, m.Result)}
}

func messageID(id int64) jsonrpc.ID {
	made, _ := jsonrpc.MakeID(float64(id)) // a number is a valid id
	return made
}

// idOf returns the value of a number, or of a string with one; 0: no integer.
func idOf(raw json.RawMessage) int64 {
	value, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if id := int64(value); err == nil && float64(id) == value {
		return id
	}
	return 0
}

// codesOfSDK are codes of errors to which the SDK gives a meaning of its own.
var codesOfSDK = []int64{-32003, -32004, codeTransport}

func errorOf(raw json.RawMessage) *jsonrpc.Error {
	e := &jsonrpc.Error{}
	if json.Unmarshal(raw, e) != nil || e.Message == "" {
		e = &jsonrpc.Error{Message: strings.Trim(string(raw), `"`)}
	}
	if e.Code == 0 || slices.Contains(codesOfSDK, e.Code) {
		e.Code = jsonrpc.CodeInternalError
	}
	return e
}

// result returns a result that the SDK decodes.
func (w *wire) result(method string, raw json.RawMessage) json.RawMessage {
	switch {
	case method == "initialize":
		return w.initialized(raw)
	case method == "tools/list":
		return w.listed(raw)
	case method == "tools/call":
		// The SDK would round numbers and reject unknown content, so it passes the whole result on as a text:
		// https://github.com/modelcontextprotocol/go-sdk/issues/1236.
		return encoded(map[string]any{"content": []any{map[string]any{"type": "text", "text": string(raw)}}})
	case !isObject(raw): // PHP encodes an empty object as an array
		return json.RawMessage(`{}`)
	}
	return raw
}

// initialized keeps what is used of the result: the SDK accepts only protocol versions that it knows.
func (w *wire) initialized(raw json.RawMessage) json.RawMessage {
	var fields struct{ ProtocolVersion string }
	_ = json.Unmarshal(raw, &fields)
	version := fields.ProtocolVersion
	if version > statefulVersion || !slices.Contains(sdk.SupportedProtocolVersions(), version) {
		w.quirk(quirkVersion)
		version = statefulVersion
	}
	return encoded(map[string]any{"protocolVersion": version, "capabilities": struct{}{}, "serverInfo": map[string]any{"name": "", "version": ""}})
}

// listed keeps what is used of the tools: the SDK rejects the whole list if a field of one of them has another type.
// Unmarshal leaves out such fields.
func (w *wire) listed(raw json.RawMessage) json.RawMessage {
	var page struct {
		Tools []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			InputSchema any    `json:"inputSchema"`
			Annotations struct {
				ReadOnlyHint   bool `json:"readOnlyHint"`
				IdempotentHint bool `json:"idempotentHint"`
			} `json:"annotations"`
		} `json:"tools"`
		NextCursor string `json:"nextCursor"`
		TTLMs      int64  `json:"ttlMs"`
	}
	if json.Unmarshal(raw, &page) != nil {
		w.quirk(quirkTool)
	}
	return encoded(page)
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func isEmpty(raw json.RawMessage) bool {
	return slices.Contains([]string{"", "null", "false", `""`}, string(raw))
}

func encoded(value any) json.RawMessage {
	data, _ := json.Marshal(value) // values that were decoded from JSON always marshal
	return data
}

// sentKey is the key of whether the message of a context has left this process.
type sentKey struct{}

func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := &atomic.Bool{}
	return context.WithValue(ctx, sentKey{}, sent), sent
}

func markSent(ctx context.Context) {
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}
