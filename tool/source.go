package tool

import "context"

// Source supplies tools whose list may change, such as those of MCP servers. Their names in
// event.SetTools begin with a prefix.
type Source interface {
	// Offer returns the tools whose canonical names match one of the patterns, without those
	// missing at present. An error, such as a [*activities.ModelError], fails the request.
	Offer(context.Context, OfferRequest) ([]Tool, error)
	// Find returns a tool by its name in requests to models. An error is a result for the model.
	Find(ctx context.Context, contextName, name string) (t Tool, found bool, err error)
}

// OfferRequest asks a [Source] for the tools of a context.
type OfferRequest struct {
	ContextName string
	Patterns    []string // each may match names with the prefix of the source
}
