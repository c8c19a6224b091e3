package a2a

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/gateway"
)

const problemPrefix = "urn:chronicle:problem:"

// kind is the type of a problem of the protocol, without its prefix.
type kind string

const (
	parseError           kind = "parse-error"
	invalidRequest       kind = "invalid-request"
	methodNotFound       kind = "method-not-found"
	taskNotFound         kind = "task-not-found"
	taskNotCancelable    kind = "task-not-cancelable"
	pushNotSupported     kind = "push-notification-not-supported"
	unsupportedOperation kind = "unsupported-operation"
	contentNotSupported  kind = "content-type-not-supported"
	versionNotSupported  kind = "version-not-supported"
)

var codes = map[kind]int{
	parseError: -32700, invalidRequest: -32600, methodNotFound: -32601, taskNotFound: -32001, taskNotCancelable: -32002, pushNotSupported: -32003,
	unsupportedOperation: -32004, contentNotSupported: -32005, versionNotSupported: -32009, "media-type": -32005, // of the body
}

const (
	codeInvalidParams = -32602
	codeInternal      = -32603
	codeGateway       = -32000 // authentication, permissions and limits
)

func failure(k kind, format string, args ...any) *gateway.Problem {
	title := strings.ReplaceAll(string(k), "-", " ")
	return &gateway.Problem{
		Type: gateway.ProblemType(problemPrefix + string(k)), Title: strings.ToUpper(title[:1]) + title[1:], Status: http.StatusBadRequest,
		Detail: fmt.Sprintf(format, args...),
	}
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    []any  `json:"data"`
}

func errorOf(p *gateway.Problem) *rpcError {
	of := strings.TrimPrefix(string(p.Type), problemPrefix)
	code := cmp.Or(codes[kind(of)], codeInvalidParams)
	if isOfGateway(p) {
		code = codeGateway
	} else if p.Status >= http.StatusInternalServerError {
		code = codeInternal
	}
	data := []any{map[string]string{
		"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": strings.ToUpper(strings.ReplaceAll(of, "-", "_")), "domain": "a2a-protocol.org",
	}}
	if p.Field != "" {
		data = append(data, map[string]any{
			"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": []map[string]string{{"field": p.Field, "description": p.Detail}},
		})
	}
	return &rpcError{code, p.Error(), data}
}

func isOfGateway(p *gateway.Problem) bool {
	return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden || p.Status == http.StatusTooManyRequests
}

// fail writes an error. That of a request of JSON-RPC has the status 200, because many clients read no other response, unless
// it is about the gateway.
func fail(w http.ResponseWriter, p *gateway.Problem) {
	status, id := p.Status, p.ReplyTo
	if id == nil {
		id = json.RawMessage("null")
	} else if status < http.StatusInternalServerError && !isOfGateway(p) {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(response{Version: "2.0", ID: id, Error: errorOf(p)}) // an error means that the client disconnected
}
