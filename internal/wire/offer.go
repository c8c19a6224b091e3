package wire

import "github.com/seed-9ed7edd4/chronicle/event"

// WorkflowOffer is the type of the workflows that look for the tools of a setting on a worker, with an [Offer] as input and
// an [Offered] as result.
const WorkflowOffer = "Offer"

// OfferID returns the workflow id of an offer.
func OfferID(contextName, id string) string { return offerPrefix + contextName + ":" + id }

const offerPrefix = "offer:"

// Offer is a setting to look for.
type Offer struct {
	ContextName string         `json:"contextName"`
	Tools       event.SetTools `json:"tools"`
}

// Offered is what a worker has of the tools of a setting.
type Offered struct {
	Unmatched []string `json:"unmatched,omitempty"` // patterns that no tool matches now; one may later, such as a tool of an MCP server
	Error     string   `json:"error,omitempty"`     // why each request with the setting would fail; empty: none would
}
