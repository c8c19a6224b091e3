package llm

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// call is a tool call in a conversation.
type call struct {
	result  int    // index of the message; -1: none
	exact   string // id that the provider of the request gave; "": unknown
	earlier int    // number of earlier calls with that id, or else with its own
}

// pair returns the calls of each message, and whether each message is the result of one. The result of a call is the first
// later one that has its id and belongs to no other call.
func (t *Target) pair(messages []reducer.Message) (calls [][]call, isPaired []bool) {
	calls, isPaired = make([][]call, len(messages)), make([]bool, len(messages))
	waiting := map[string][]int{}
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := &messages[i]; m.Role {
		case reducer.RoleTool:
			waiting[m.ToolCallID] = append(waiting[m.ToolCallID], i)
		case reducer.RoleAssistant:
			for _, made := range m.ToolCalls {
				found := -1
				if n := len(waiting[made.ID]); n > 0 {
					found = waiting[made.ID][n-1]
					waiting[made.ID] = waiting[made.ID][:n-1]
					isPaired[found] = true
				}
				calls[i] = append(calls[i], call{result: found})
			}
		}
	}
	times := map[string]int{}
	for i := range calls {
		ids := t.callIDs(&messages[i])
		for n := range calls[i] {
			c, id := &calls[i][n], messages[i].ToolCalls[n].ID
			if ids != nil && ids[n] != "" {
				c.exact, id = ids[n], ids[n]
			}
			c.earlier = times[id]
			times[id]++
		}
	}
	return calls, isPaired
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
