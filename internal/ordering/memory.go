package ordering

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Memory is a server that thinks before it calls tools. It demands the reasoning of each answer with calls, and the ids
// of its own calls, exactly as it gave them.
type Memory struct{ given []given }

type given struct{ mark, id, reasoning string }

// Call remembers a call. Its arguments contain the mark, which is unique, since the id may not be.
func (m *Memory) Call(mark, id, reasoning string) {
	m.given = append(m.given, given{mark, id, reasoning})
}

// Check returns why the server rejects a request; empty if it does not.
func (m *Memory) Check(body []byte) (problems []string) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return []string{fmt.Sprintf("the body is not a request: %v", err)}
	}
	for i, message := range r.Messages {
		for _, c := range message.ToolCalls {
			if message.Reasoning == nil {
				problems = append(problems, fmt.Sprintf("message %d has a tool call without reasoning_content", i))
			}
			for _, given := range m.given {
				if !strings.Contains(string(c.Function.Arguments), given.mark) {
					continue
				}
				if c.ID != given.id {
					problems = append(problems, fmt.Sprintf("message %d has the tool call id %q instead of %q", i, c.ID, given.id))
				}
				if message.Reasoning != nil && *message.Reasoning != given.reasoning {
					problems = append(problems, fmt.Sprintf("message %d has other reasoning with its tool call", i))
				}
			}
		}
	}
	return problems
}
