package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
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
		{Pattern: "GET /v1/responses/{id}", Operation: "getResponse", Roles: readers, Serve: ofResponse(getResponse)},
		{Pattern: "DELETE /v1/responses/{id}", Operation: "deleteResponse", Roles: admins, Serve: ofResponse(deleteResponse)},
		{Pattern: "POST /v1/responses/{id}/cancel", Operation: "cancelResponse", Roles: writers, Serve: ofResponse(cancelResponse)},
		{Pattern: "GET /v1/responses/{id}/input_items", Operation: "listInputItems", Roles: readers, Serve: ofResponse(listInputItems)},
		{Pattern: "POST /v1/conversations", Operation: "createConversation", Roles: writers, Serve: createConversation},
		{Pattern: "GET /v1/conversations/{name}", Operation: "getConversation", Roles: readers, Serve: ofConversation(getConversation)},
		{Pattern: "POST /v1/conversations/{name}", Operation: "updateConversation", Roles: writers, Serve: ofConversation(updateConversation)},
		{Pattern: "DELETE /v1/conversations/{name}", Operation: "deleteConversation", Roles: admins, Serve: ofConversation(deleteConversation)},
		{Pattern: "GET /v1/conversations/{name}/items", Operation: "listItems", Roles: readers, Serve: ofConversation(listItems)},
		{Pattern: "POST /v1/conversations/{name}/items", Operation: "createItems", Roles: writers, Serve: ofConversation(createItems)},
		{Pattern: "GET /v1/conversations/{name}/items/{id}", Operation: "getItem", Roles: readers, Serve: ofConversation(getItem)},
		{Pattern: "DELETE /v1/conversations/{name}/items/{id}", Operation: "deleteItem", Roles: admins, Serve: ofConversation(deleteItem)},
		{Pattern: "POST /v1/chat/completions", Operation: "createChatCompletion", Roles: writers, Serve: createChatCompletion},
		{Pattern: "GET /v1/models", Operation: "listModels", Roles: readers, Serve: listModels},
		{Pattern: "GET /v1/models/{id...}", Operation: "getModel", Roles: readers, Serve: getModel},
	}}
}

// fail writes an error in the shape of the API.
func fail(w http.ResponseWriter, p *gateway.Problem) {
	w.Header().Set("Content-Type", "application/json")
	status := p.Status
	if code(p) == "refused" { // an invalid value that only the context knows
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
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
	kind = kind[strings.LastIndexByte(kind, ':')+1:]
	if kind == "request" && p.Field != "" {
		return "invalid_value"
	}
	return strings.ReplaceAll(kind, "-", "_")
}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func modelOf(id string) model {
	of := model{id, "model", 0, "chronicle"}
	if id != defaultModel {
		of.OwnedBy = setModel(id).ProviderID
	}
	return of
}

// listModels lists the model of the context. Workers know which other ones they can reach; requests may name any.
func listModels(x *gateway.Exchange) error {
	x.JSON(http.StatusOK, list[model]{Object: "list", Data: []model{modelOf(defaultModel)}, FirstID: defaultModel, LastID: defaultModel})
	return nil
}

func getModel(x *gateway.Exchange) error {
	x.JSON(http.StatusOK, modelOf(x.Request.PathValue("id")))
	return nil
}

// modelError returns the error for a request that named a model that the worker or the provider does not have; nil: it has.
// The failure of the context's own model is that of the response.
func modelError(named string, r *thread.Request) error {
	if r == nil || named == "" || named == defaultModel {
		return nil
	}
	failed, ok := r.End.(event.LLMRequestFailed)
	if !ok || failed.Kind != event.FailureModelNotFound && failed.Kind != event.FailureConfiguration {
		return nil
	}
	p := gateway.BadRequest("model", "%s", failed.Error)
	p.Type, p.Status, p.Title = "urn:chronicle:problem:model-not-found", http.StatusNotFound, "The model is not available"
	return p
}
