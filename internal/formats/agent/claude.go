package agent

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type claudeLine struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Timestamp json.RawMessage `json:"timestamp"`

	// type "system"
	Cwd     string          `json:"cwd"`
	Tools   json.RawMessage `json:"tools"`
	Model   string          `json:"model"`
	Content string          `json:"content"`

	// type "assistant" and "user"
	Message claudeMessage `json:"message"`
	// ParentToolUseID is the call that started the subagent speaking here.
	ParentToolUseID string `json:"parent_tool_use_id"`

	// type "result"
	Result       string          `json:"result"`
	IsError      bool            `json:"is_error"`
	NumTurns     int             `json:"num_turns"`
	DurationMs   int64           `json:"duration_ms"`
	Usage        json.RawMessage `json:"usage"`
	TotalCostUSD float64         `json:"total_cost_usd"`

	// Session files mark what neither the user nor the model said in the conversation.
	FileSessionID    string `json:"sessionId"`
	IsMeta           bool   `json:"isMeta"`
	IsSynthetic      bool   `json:"isSynthetic"`
	IsSidechain      bool   `json:"isSidechain"` // of the subagent AgentID
	AgentID          string `json:"agentId"`
	IsCompactSummary bool   `json:"isCompactSummary"`
	IsAPIError       bool   `json:"isApiErrorMessage"`
}

type claudeMessage struct {
	ID    string `json:"id"`
	Model string `json:"model"`
	// Content is a string or []block.
	Content json.RawMessage `json:"content"`
}

// syntheticModel names the messages that Claude Code writes in the place of the model.
const syntheticModel = "<synthetic>"

type claude struct{ repeats repeats }

func (c *claude) parse(line []byte) (session string, items []item, err error) {
	var l claudeLine
	if err := decode(line, &l); err != nil {
		return "", nil, err
	}
	items, err = c.itemsOf(l)
	return cmp.Or(l.SessionID, l.FileSessionID), items, err
}

func (c *claude) itemsOf(l claudeLine) ([]item, error) {
	fields := extra{"messageId": l.Message.ID, "parentToolCallId": l.ParentToolUseID, "agentId": l.AgentID, sourceTimestamp: timeOf(l.Timestamp)}
	switch l.Type {
	case "system":
		return []item{c.system(l)}, nil
	case "assistant", "user":
		return c.message(l, fields)
	case "result":
		return c.result(l, fields), nil
	case "stream_event":
		return nil, nil // deltas of the message that follows
	}
	return []item{skip(l.Type)}, nil
}

func (c *claude) system(l claudeLine) item {
	at := timeOf(l.Timestamp)
	switch {
	case l.Subtype == "init":
		return c.repeats.initialized(initLine{l.SessionID, l.Cwd, l.Model}, extra{"tools": l.Tools, sourceTimestamp: at})
	case l.Content != "" || l.Subtype == "compact_boundary":
		return note(event.NoteSystem, cmp.Or(l.Content, "Conversation compacted"), extra{sourceTimestamp: at})
	}
	return skip("system/" + l.Subtype)
}

func (c *claude) message(l claudeLine, fields extra) ([]item, error) {
	blocks, err := blocksOf(l.Message.Content)
	if err != nil {
		return nil, err
	}
	say := c.repeats.assistantSaid
	switch {
	case l.IsAPIError:
		say = noted(event.NoteError)
	case l.ParentToolUseID != "", l.IsSidechain, l.IsMeta, l.IsSynthetic, l.IsCompactSummary, l.Message.Model == syntheticModel:
		say = noted(event.NoteSystem)
	case l.Type == "user":
		say = c.repeats.userSaid
	}
	return itemsOfBlocks(blocks, say, fields), nil
}

// result converts the line that ends the run.
func (c *claude) result(l claudeLine, fields extra) []item {
	var out []item
	if l.IsError || l.Subtype != "success" && l.Subtype != "" {
		c.repeats.finished = true
		out = append(out, note(event.NoteError, cmp.Or(l.Result, l.Subtype, "failed"), fields))
	} else {
		out = c.repeats.finalAnswer(l.Result, fields)
	}
	var tokens struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
	var more []string
	if json.Unmarshal(l.Usage, &tokens) == nil {
		more = append(more, fmt.Sprintf("%d tokens in, %d out", tokens.Input, tokens.Output))
	}
	if l.TotalCostUSD > 0 {
		more = append(more, fmt.Sprintf("$%.4f", l.TotalCostUSD))
	}
	return append(out, note(event.NoteUsage, usage(l.NumTurns, l.DurationMs, more...), extra{
		"subtype": l.Subtype, "numTurns": l.NumTurns, "durationMs": l.DurationMs, "usage": l.Usage, "totalCostUsd": l.TotalCostUSD,
		sourceTimestamp: fields[sourceTimestamp],
	}))
}
