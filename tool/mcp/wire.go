package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

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
	quirkNoise     = "mcp_stdout_noise"       // text between messages
	quirkMessage   = "mcp_message_repaired"   // a message that is not JSON-RPC 2.0
	quirkID        = "mcp_id_type"            // an id of another type, or none
	quirkVersion   = "mcp_protocol_version"   // an unknown protocol version
	quirkTool      = "mcp_tool_repaired"      // a tool with fields of other types, or another name
	quirkSchema    = "mcp_schema_repaired"    // a schema that is not a JSON Schema of an object
	quirkCursor    = "mcp_cursor_repeated"    // a listing without an end
	quirkContent   = "mcp_unknown_content"    // a result that is not as specified
	quirkStream    = "mcp_stream_reconnected" // an event stream of an HTTP server ended
	quirkNotice    = "mcp_notice_rejected"    // an HTTP server rejected a notification
	quirkSessionID = "mcp_session_status"     // an expired session without the status 404
)

// write notes a message to the server.
func (w *wire) write(m jsonrpc.Message) (id int64) {
	request, isRequest := m.(*jsonrpc.Request)
	if !isRequest {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if id, isCall := request.ID.Raw().(int64); isCall {
		if w.sent == nil {
			w.sent = map[int64]string{}
		}
		w.sent[id] = request.Method
		return id
	}
	if request.Method == "notifications/cancelled" {
		var cancelled struct{ RequestID int64 }
		_ = json.Unmarshal(request.Params, &cancelled)
		delete(w.sent, cancelled.RequestID)
	}
	return 0
}

// read returns the messages in a JSON text: none if they answer no request, and isMessage is false if the text is
// something else. A response without a known id belongs to the request with the id call, if it is not 0, or to the
// only request without a response.
func (w *wire) read(text []byte, call int64) (messages []jsonrpc.Message, isMessage bool) {
	text = bytes.Trim(text, "\ufeff\x00 \t\r\n")
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	if !json.Valid(text) {
		if text = withoutNaN(text); !json.Valid(text) {
			return nil, false
		}
		w.quirk(quirkMessage)
	}
	var batch []json.RawMessage
	if json.Unmarshal(text, &batch) != nil {
		batch = []json.RawMessage{text}
	}
	for _, one := range batch {
		m, ok := w.message(one, call)
		isMessage = isMessage || ok
		if m != nil {
			messages = append(messages, m)
		}
	}
	return messages, isMessage
}

type envelope struct {
	JSONRPC, ID, Method, Params, Result, Error json.RawMessage
}

func (w *wire) message(text []byte, call int64) (_ jsonrpc.Message, isMessage bool) {
	var m envelope
	if json.Unmarshal(text, &m) != nil {
		return nil, false
	}
	var method string
	if isString(m.Method, &method) && method != "" {
		return w.request(m, method)
	}
	if m.Result == nil && isEmpty(m.Error) {
		return nil, false
	}
	// The objects in a log may look like a response.
	if m.JSONRPC == nil && !isObject(m.Result) && !isObject(m.Error) {
		return nil, false
	}
	id, method := w.answered(m, call)
	if id == 0 {
		return nil, m.JSONRPC != nil
	}
	if string(m.JSONRPC) != `"2.0"` {
		w.quirk(quirkMessage)
	}
	response := &jsonrpc.Response{ID: messageID(id)}
	if !isEmpty(m.Error) {
		response.Error = errorOf(m.Error)
		return response, true
	}
	response.Result = w.result(method, m.Result)
	return response, true
}

// request returns nil for an echo of a message to the server, as of a terminal.
func (w *wire) request(m envelope, method string) (_ jsonrpc.Message, isMessage bool) {
	if m.JSONRPC == nil {
		return nil, false
	}
	id, _ := idOf(m.ID)
	w.mu.Lock()
	isEcho := w.sent[id] == method || method == "notifications/initialized"
	w.mu.Unlock()
	switch {
	case isEcho:
		return nil, false
	case method == "notifications/cancelled": // no request of the server takes time
		return nil, true
	}
	request := &jsonrpc.Request{Method: method}
	if isObject(m.Params) {
		request.Params = m.Params
	}
	var raw any
	_ = json.Unmarshal(m.ID, &raw)
	request.ID, _ = jsonrpc.MakeID(raw)
	return request, true
}

// answered returns the request that a message answers, and its method; 0: none.
func (w *wire) answered(m envelope, call int64) (id int64, method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, isPlain := idOf(m.ID)
	if w.sent[id] == "" {
		isPlain = false
		switch {
		case call != 0:
			id = call
		case isEmpty(m.ID) && m.JSONRPC != nil && len(w.sent) == 1:
			for id = range w.sent {
			}
		default:
			return 0, ""
		}
	}
	if !isPlain && (!isEmpty(m.ID) || isEmpty(m.Error)) { // an error may lack an id
		w.quirk(quirkID)
	}
	method = w.sent[id]
	delete(w.sent, id)
	return id, method
}

func messageID(id int64) jsonrpc.ID {
	made, _ := jsonrpc.MakeID(float64(id)) // a number is a valid id
	return made
}

// idOf returns the value of a number, or of a string with one; 0: no integer.
func idOf(raw json.RawMessage) (id int64, isPlain bool) {
	text := strings.TrimSpace(strings.Trim(string(raw), `"`))
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value != math.Trunc(value) || math.Abs(value) > 1<<53 {
		return 0, false
	}
	return int64(value), strconv.FormatInt(int64(value), 10) == string(raw)
}

// fail returns errors as responses to all requests, or to one of them.
func (w *wire) fail(call int64, reason string) (responses []jsonrpc.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.sent {
		if call == 0 || call == id {
			responses = append(responses, &jsonrpc.Response{ID: messageID(id), Error: &jsonrpc.Error{Code: codeTransport, Message: reason}})
			delete(w.sent, id)
		}
	}
	return responses
}

// codes of errors to which the SDK gives a meaning of its own.
var codesOfSDK = []int64{-32003, -32004, codeTransport}

func errorOf(raw json.RawMessage) *jsonrpc.Error {
	var fields struct{ Code, Message, Data json.RawMessage }
	if !isObject(raw) || json.Unmarshal(raw, &fields) != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: textIn(raw)}
	}
	e := &jsonrpc.Error{Message: textIn(fields.Message), Data: fields.Data}
	if e.Code, _ = idOf(fields.Code); e.Code == 0 || slices.Contains(codesOfSDK, e.Code) {
		e.Code = jsonrpc.CodeInternalError
	}
	var detail string
	switch {
	case e.Message == "":
		e.Message = textIn(raw)
	case isString(fields.Data, &detail) && !strings.Contains(e.Message, detail):
		e.Message += ": " + detail
	}
	return e
}

// result returns a result that the SDK decodes.
func (w *wire) result(method string, raw json.RawMessage) json.RawMessage {
	switch method {
	case "initialize":
		return w.initialized(raw)
	case "tools/list":
		return w.listed(raw)
	case "tools/call":
		// The SDK would round numbers and reject unknown content, so it passes the whole result on as a text:
		// https://github.com/modelcontextprotocol/go-sdk/issues/1236.
		return encoded(map[string]any{"content": []any{map[string]any{"type": "text", "text": string(raw)}}})
	}
	if !isObject(raw) {
		return json.RawMessage(`{}`)
	}
	return raw
}

// initialized keeps what is used of the result: the SDK accepts only protocol versions that it knows.
func (w *wire) initialized(raw json.RawMessage) json.RawMessage {
	var fields struct{ ProtocolVersion json.RawMessage }
	_ = json.Unmarshal(raw, &fields)
	given := textIn(fields.ProtocolVersion)
	known := sdk.SupportedProtocolVersions() // newest first
	version := known[len(known)-1]
	for _, candidate := range slices.Backward(known) {
		if candidate <= given && candidate <= statefulVersion {
			version = candidate
		}
	}
	if version != given {
		w.quirk(quirkVersion)
	}
	return encoded(map[string]any{"protocolVersion": version, "capabilities": struct{}{}, "serverInfo": map[string]any{"name": "", "version": ""}})
}

// listed keeps what is used of the tools: the SDK rejects the whole list if a field of one of them has another type.
func (w *wire) listed(raw json.RawMessage) json.RawMessage {
	var page struct {
		Tools, NextCursor json.RawMessage
		TTLMs             json.RawMessage `json:"ttlMs"`
	}
	_ = json.Unmarshal(raw, &page)
	tools := []any{}
	for _, element := range elementsOf(page.Tools) {
		var t struct {
			Name, Description, InputSchema json.RawMessage
			InputSchema2                   json.RawMessage `json:"input_schema"`
			Annotations                    json.RawMessage
		}
		_ = json.Unmarshal(element, &t)
		var name, description string
		if !isString(t.Name, &name) || t.Description != nil && !isString(t.Description, &description) || t.InputSchema == nil {
			w.quirk(quirkTool)
		}
		if t.InputSchema == nil {
			t.InputSchema = t.InputSchema2
		}
		var hints struct{ ReadOnlyHint, IdempotentHint json.RawMessage }
		_ = json.Unmarshal(t.Annotations, &hints)
		tools = append(tools, map[string]any{
			"name": textIn(t.Name), "description": textIn(t.Description), "inputSchema": t.InputSchema,
			"annotations": map[string]bool{"readOnlyHint": isTrue(hints.ReadOnlyHint), "idempotentHint": isTrue(hints.IdempotentHint)},
		})
	}
	ttl, _ := idOf(page.TTLMs)
	cursor := textIn(page.NextCursor)
	if _, err := strconv.ParseFloat(string(page.NextCursor), 64); err != nil && !isString(page.NextCursor, &cursor) {
		cursor = "" // neither a string nor a number
	}
	return encoded(map[string]any{"tools": tools, "nextCursor": cursor, "ttlMs": ttl})
}

// elementsOf returns the elements of an array, or the values of an object, as PHP encodes some arrays.
func elementsOf(raw json.RawMessage) (elements []json.RawMessage) {
	if json.Unmarshal(raw, &elements) == nil {
		return elements
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if begin, _ := decoder.Token(); begin != json.Delim('{') {
		return nil
	}
	for decoder.More() {
		var value json.RawMessage
		if _, err := decoder.Token(); err != nil || decoder.Decode(&value) != nil {
			break
		}
		elements = append(elements, value)
	}
	return elements
}

// withoutNaN replaces NaN and Infinity, which some encoders write, by null.
func withoutNaN(text []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			inString = !inString
		case inString && b == '\\' && i+1 < len(text):
			out = append(out, b)
			i++
		case !inString && (b == 'N' || b == 'I' || b == '-'):
			if word := nan(text[i:]); word > 0 {
				out = append(out, "null"...)
				i += word - 1
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

func nan(text []byte) int {
	for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// textIn returns a string, "" for null, or the JSON of another value.
func textIn(raw json.RawMessage) string {
	var text string
	if isString(raw, &text) || string(raw) == "null" {
		return text
	}
	return string(raw)
}

func isString(raw json.RawMessage, text *string) bool {
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, text) == nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func isTrue(raw json.RawMessage) bool {
	return slices.Contains([]string{"true", "1"}, strings.ToLower(textIn(raw)))
}

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
