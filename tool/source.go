package tool

import "context"

// Source supplies tools whose list may change, such as those of MCP servers. The names of its
// tools in event.SetTools begin with a prefix.
type Source interface {
	// Offer returns the tools whose canonical names match one of the patterns. Tools that are
	// missing at present are left out. An error fails the request; it may be of type
	// [*activities.ModelError].
	Offer(context.Context, OfferRequest) ([]Tool, error)
	// Find returns a tool by its name in requests to models; found is false if there is none.
	Find(ctx context.Context, contextName, name string) (t Tool, found bool, err error)
}

// OfferRequest asks a [Source] for the tools of a context.
type OfferRequest struct {
	ContextName string
	// RequestID is the same in all steps of a turn. A model may call a tool that an earlier step
	// offered, so the tools of a request should not change.
	RequestID string
	// Patterns all have the prefix of the source.
	Patterns []string
}
