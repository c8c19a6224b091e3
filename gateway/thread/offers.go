package thread

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Offers selects, of calls that wait for clients as far as the log shows, those that do. Only a worker knows: the log shows
// that a call requires an approval, or has invalid arguments, after the end of the attempt. Without a worker, all do.
func Offers(h *gateway.Handle) func(calls []string) (offered []string) {
	isOffered := map[string]bool{}
	return func(calls []string) []string {
		if slices.ContainsFunc(calls, func(id string) bool { return !isOffered[id] }) {
			state, err := h.State()
			if err != nil {
				return calls
			}
			clear(isOffered)
			if state.Request != nil {
				for _, call := range state.Request.Calls {
					isOffered[call.ID] = call.State == reducer.CallClient
				}
			}
		}
		return slices.DeleteFunc(calls, func(id string) bool { return !isOffered[id] })
	}
}
