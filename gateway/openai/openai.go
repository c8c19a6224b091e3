package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

var (
	readers = []auth.Role{auth.RoleRead}
	writers = []auth.Role{auth.RoleWrite}
	senders = []auth.Role{auth.RoleWrite, auth.RoleApprove} // each event requires one of them
	admins  = []auth.Role{auth.RoleAdmin}
)

// Protocol returns the API.
func Protocol() gateway.Protocol {
	return gateway.Protocol{Path: "/v1/", Fail: fail, Routes: []gateway.ProtocolRoute{
		{Pattern: "POST /v1/responses", Operation: "createResponse", Roles: senders, Serve: createResponse},
		{Pattern: "GET /v1/responses/{id}", Operation: "getResponse", Roles: readers, Serve: getResponse},
		{Pattern: "DELETE /v1/responses/{id}", Operation: "deleteResponse", Roles: admins, Serve: deleteResponse},
		{Pattern: "POST /v1/responses/{id}/cancel", Operation: "cancelResponse", Roles: writers, Serve: cancelResponse},
		{Pattern: "GET /v1/responses/{id}/input_items", Operation: "listInputItems", Roles: readers, Serve: listInputItems},
		{Pattern: "POST /v1/conversations", Operation: "createConversation", Roles: writers, Serve: createConversation},
		{Pattern: "GET /v1/conversations/{name}", Operation: "getConversation", Roles: readers, Serve: getConversation},
		{Pattern: "POST /v1/conversations/{name}", Operation: "updateConversation", Roles: writers, Serve: updateConversation},
		{Pattern: "DELETE /v1/conversations/{name}", Operation: "deleteConversation", Roles: admins, Serve: deleteConversation},
		{Pattern: "GET /v1/conversations/{name}/items", Operation: "listItems", Roles: readers, Serve: listItems},
		{Pattern: "POST /v1/conversations/{name}/items", Operation: "createItems", Roles: writers, Serve: createItems},
		{Pattern: "GET /v1/conversations/{name}/items/{id}", Operation: "getItem", Roles: readers, Serve: getItem},
		{Pattern: "POST /v1/chat/completions", Operation: "createChatCompletion", Roles: writers, Serve: createChatCompletion},
		{Pattern: "GET /v1/models", Operation: "listModels", Roles: readers, Serve: listModels},
		{Pattern: "GET /v1/models/{id...}", Operation: "getModel", Roles: readers, Serve: getModel},
	}}
}

// fail writes an error in the shape of the API.
func fail(w http.ResponseWriter, p *gateway.Problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(errorOf(p)) // an error means that the client disconnected
}

func errorOf(p *gateway.Problem) any {
	kind := "invalid_request_error"
	switch {
	case p.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case p.Status == http.StatusForbidden:
		kind = "permission_error"
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.Status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	var param *string
	if p.Field != "" {
		param = &p.Field
	}
	return map[string]any{"error": map[string]any{"message": p.Error(), "type": kind, "param": param, "code": code(p)}}
}

// code returns the code of an error: unsupported_parameter, no_context.
func code(p *gateway.Problem) string {
	kind := string(p.Type)
	return strings.ReplaceAll(kind[strings.LastIndexByte(kind, ':')+1:], "-", "_")
}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// listModels lists the model of the context. Workers know which other ones they can reach; requests may name any.
func listModels(x *gateway.Exchange) error {
	x.JSON(http.StatusOK, list[model]{Object: "list", Data: []model{{defaultModel, "model", 0, "chronicle"}}, FirstID: defaultModel, LastID: defaultModel})
	return nil
}

func getModel(x *gateway.Exchange) error {
	id := x.Request.PathValue("id")
	x.JSON(http.StatusOK, model{id, "model", 0, setModel(id).ProviderID})
	return nil
}
