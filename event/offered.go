package event

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ToolsOffered records which tools of the worker are offered to the model, from this attempt on until
// the next such event. It has at most [MaxOfferedBytes] of JSON. Tools of clients are in the [SetTools].
//
//doc:effect when a model is offered other [tools](#tools) of the worker than in the attempt before
type ToolsOffered struct {
	RequestID string `json:"requestId" schema:"id,min=1"`
	Attempt   int    `json:"attempt" schema:"min=1"`
	// The names of the SetToolsEvent that the tools match.
	Patterns []string `json:"patterns" schema:"min=1,max=MaxTools,items.min=1,items.max=MaxPatternBytes"`
	// In the order of the request; absent: no tool matched.
	Tools []OfferedTool `json:"tools,omitempty" schema:"max=MaxTools"`
	// Tools that match but cannot be offered.
	Withheld []WithheldTool `json:"withheld,omitempty" schema:"max=MaxTools"`
}

const TagToolsOffered Tag = "ToolsOfferedEvent"

func (ToolsOffered) Tag() Tag          { return TagToolsOffered }
func (b ToolsOffered) Request() string { return b.RequestID }

func (b ToolsOffered) validate() error {
	if b.Attempt < 1 {
		return fieldf("attempt", "want 1 or more, got %d", b.Attempt)
	}
	if err := requestID(b.RequestID); err != nil {
		return err
	}
	if len(b.Patterns) == 0 || len(b.Patterns) > MaxTools {
		return fieldf("patterns", "want 1 to %d, got %d", MaxTools, len(b.Patterns))
	}
	for i, pattern := range b.Patterns {
		if err := validatePattern("patterns."+strconv.Itoa(i), pattern); err != nil {
			return err
		}
	}
	if len(b.Tools) > MaxTools {
		return fieldf("tools", "%d tools (at most %d)", len(b.Tools), MaxTools)
	}
	for i, tool := range b.Tools {
		if err := within("tools."+strconv.Itoa(i), tool.validate()); err != nil {
			return err
		}
	}
	if len(b.Withheld) > MaxTools {
		return fieldf("withheld", "%d tools (at most %d)", len(b.Withheld), MaxTools)
	}
	for i, tool := range b.Withheld {
		if err := within("withheld."+strconv.Itoa(i), tool.validate()); err != nil {
			return err
		}
	}
	if data, err := json.Marshal(b); err != nil || len(data) > MaxOfferedBytes {
		return fieldf("tools", "the event has %d bytes of JSON (at most %d)", len(data), MaxOfferedBytes)
	}
	return nil
}

// Hash identifies the patterns and the tools.
func (b ToolsOffered) Hash() string {
	data, _ := json.Marshal(ToolsOffered{Patterns: b.Patterns, Tools: b.Tools, Withheld: b.Withheld}) // strings and numbers always marshal
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// String lists the names: "3 tools: fetch, mcp:files/read, read_result". Withheld tools follow with the reasons.
func (b ToolsOffered) String() string {
	text := b.names()
	for _, t := range b.Withheld {
		text += "; not offered: " + t.Name + " (" + t.Reason + ")"
	}
	return text
}

func (b ToolsOffered) names() string {
	if len(b.Tools) == 0 {
		return "none of " + strings.Join(b.Patterns, ", ")
	}
	var names []string
	for _, t := range b.Tools {
		names = append(names, cmp.Or(t.Canonical, t.Name))
	}
	unit := "tools"
	if len(names) == 1 {
		unit = "tool"
	}
	return fmt.Sprintf("%d %s: %s", len(names), unit, strings.Join(names, ", "))
}

func (b ToolsOffered) Words() (subject, text string) { return "tools offered", b.String() }

func (ToolsOffered) example() Body {
	return ToolsOffered{
		RequestID: "demo:r0001", Attempt: 1, Patterns: []string{"mcp:files/*"}, Tools: []OfferedTool{{
			Name: "mcp__files__read", Canonical: "mcp:files/read", Description: "Read a file", Parameters: `{"type":"object"}`, Idempotent: true,
			TimeoutMs: 60_000, Attempts: 3,
		}}, Withheld: []WithheldTool{{Name: "mcp:files/sum", Reason: "the input schema is of type \"array\""}},
	}
}

// WithheldTool is a tool that no model can be offered, such as one of an MCP server whose schema is invalid.
type WithheldTool struct {
	Name   string `json:"name" schema:"is=Name"`              // the name in a SetToolsEvent, such as `mcp:files/read`
	Reason string `json:"reason" schema:"max=MaxReasonBytes"` // why it cannot be offered
}

func (t WithheldTool) validate() error {
	if len(t.Reason) > MaxReasonBytes {
		return fieldf("reason", "%d bytes (at most %d)", len(t.Reason), MaxReasonBytes)
	}
	return cmp.Or(ValidateName("name", t.Name), text("reason", t.Reason))
}

// MaxReasonBytes bounds the reason of a [WithheldTool].
const MaxReasonBytes = 500

// OfferedTool is a tool of the worker as it was when a request offered it.
type OfferedTool struct {
	Name string `json:"name" schema:"is=ToolName"` // the name for models
	// The name in a SetToolsEvent, such as `mcp:files/read`; absent: Name.
	Canonical   string `json:"canonical,omitempty" schema:"max=MaxNameBytes"`
	Description string `json:"description,omitempty"`
	Parameters  string `json:"parameters,omitempty"`               // the text of the JSON Schema of the arguments
	Idempotent  bool   `json:"idempotent,omitempty"`               // whether the call is repeated if its worker dies
	TimeoutMs   int64  `json:"timeoutMs,omitempty" schema:"min=0"` // the timeout of a call; absent: 60,000
	// The maximum number of attempts of a call; absent: 1.
	Attempts int `json:"attempts,omitempty" schema:"min=0"`
}

func (t OfferedTool) validate() error {
	if t.Name == "" || !schemaName(t.Name) {
		return fieldf("name", "want 1 to 64 of A-Z a-z 0-9 _ -, got %s", quote(t.Name))
	}
	if t.Canonical != "" {
		if err := ValidateName("canonical", t.Canonical); err != nil {
			return err
		}
	}
	if t.Parameters != "" && !json.Valid([]byte(t.Parameters)) {
		return fieldf("parameters", "invalid JSON")
	}
	if t.TimeoutMs < 0 {
		return fieldf("timeoutMs", "want 0 or more, got %d", t.TimeoutMs)
	}
	if t.Attempts < 0 {
		return fieldf("attempts", "want 0 or more, got %d", t.Attempts)
	}
	return cmp.Or(text("description", t.Description), text("parameters", t.Parameters))
}

// MaxOfferedBytes bounds the JSON of a [ToolsOffered].
const MaxOfferedBytes = 512 << 10

// Patterns returns the patterns of the tools of the worker; b may be nil.
func (b *SetTools) Patterns() (patterns []string) {
	if b == nil {
		return nil
	}
	for _, t := range b.Tools {
		if !t.IsClient() {
			patterns = append(patterns, t.Pattern)
		}
	}
	return patterns
}
