package llm

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// call has the indexes of its message and its result (-1: none).
type call struct {
	by, result int
	exact      string // id that the provider of the request gave; "": unknown
	earlier    int    // number of earlier calls with that id, or else with its own
}

// pair finds the result of each call: the first later result that has its id and belongs to no other call.
func pair(messages []reducer.Message) (calls []call, isPaired []bool) {
	isPaired = make([]bool, len(messages))
	waiting := map[string][]int{}
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if m.Role == reducer.RoleTool {
			waiting[m.ToolCallID] = append(waiting[m.ToolCallID], i)
		}
		if m.Role != reducer.RoleAssistant {
			continue
		}
		first := len(calls)
		for _, made := range m.ToolCalls {
			found := -1
			if n := len(waiting[made.ID]); n > 0 {
				found = waiting[made.ID][n-1]
				waiting[made.ID] = waiting[made.ID][:n-1]
				isPaired[found] = true
			}
			calls = append(calls, call{by: i, result: found})
		}
		slices.Reverse(calls[first:])
	}
	slices.Reverse(calls)
	return calls, isPaired
}

// identify sets the ids of calls.
func (t *Target) identify(messages []reducer.Message, calls []call) {
	times := map[string]int{}
	next := 0
	for i := range messages {
		m := &messages[i]
		if m.Role != reducer.RoleAssistant || len(m.ToolCalls) == 0 {
			continue
		}
		ids := t.callIDs(m)
		for n, made := range m.ToolCalls {
			id := made.ID
			if ids != nil && ids[n] != "" {
				calls[next].exact, id = ids[n], ids[n]
			}
			calls[next].earlier = times[id]
			times[id]++
			next++
		}
	}
}

// callIDs returns the ids that the target gave to the calls of a message; nil if they are unknown or ambiguous.
func (t *Target) callIDs(m *reducer.Message) []string {
	s := t.stateOf(m)
	if s == nil || len(s.CallIDs) != len(m.ToolCalls) {
		return nil
	}
	for i, id := range s.CallIDs {
		if slices.Contains(s.CallIDs[:i], id) {
			return nil
		}
	}
	return s.CallIDs
}
