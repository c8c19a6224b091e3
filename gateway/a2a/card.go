package a2a

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

const cardPath = "/.well-known/agent-card.json"

// Options describe the agent.
type Options struct {
	PublicURL string // where clients reach the gateway; "": at the host of each request
	Version   string // of the agent; "": unknown
	IsBearer  bool   // clients authenticate with a bearer token
}

func (o Options) card(x *gateway.Exchange) error {
	card := map[string]any{
		"name": "Chronicle", "version": cmp.Or(o.Version, "unknown"),
		"description":         "Conversations that outlive connections, clients and workers: a contextId is the name of a conversation",
		"supportedInterfaces": []any{map[string]string{"url": o.base(x.Request) + endpoint, "protocolBinding": "JSONRPC", "protocolVersion": version}},
		"capabilities":        map[string]bool{"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
		"defaultInputModes":   event.MediaTypes(), "defaultOutputModes": []string{"text/plain"},
		"skills": []any{map[string]any{
			"id": "chat", "name": "Chat", "description": "Answers messages with the model and the tools of the conversation", "tags": []string{"chat"},
		}},
	}
	if o.IsBearer {
		card["securitySchemes"] = map[string]any{"bearer": map[string]any{"httpAuthSecurityScheme": map[string]string{"scheme": "Bearer"}}}
		card["securityRequirements"] = []any{map[string]any{"schemes": map[string]any{"bearer": map[string]any{}}}}
	}
	x.Header().Set("Cache-Control", "max-age=60")
	x.JSON(http.StatusOK, card)
	return nil
}

// base returns the URL of the gateway.
func (o Options) base(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return strings.TrimSuffix(cmp.Or(o.PublicURL, scheme+"://"+r.Host), "/")
}
