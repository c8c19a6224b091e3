package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SetTools sets the tools that the context may use, and replaces all of them: without tools, the model is offered none, and
// absent settings return to their defaults. The event has at most [MaxToolsBytes] of JSON.
//
//doc:effect none; replaces the [tools](#tools) of the context; without tools, none are offered
type SetTools struct {
	// Tools of the worker by name, such as `fetch`, tools of MCP servers as `mcp:SERVER/TOOL`, and tools that clients
	// execute. In names, `*` matches any characters.
	Tools ToolList `json:"tools,omitempty" schema:"max=MaxTools"`
	// Calls that require an approval: all calls of a tool, or only those whose arguments a JSON Schema accepts.
	Approve ApprovalRules `json:"approve,omitempty" schema:"max=MaxTools"`
	// MaxSteps bounds the answers with tool calls in a turn, 1 to [MaxMaxSteps]; unset means 16.
	// A last attempt, which must not call tools, follows.
	MaxSteps *int `json:"maxSteps,omitempty" schema:"min=1,max=MaxMaxSteps"`
	// The maximum number of calls that run at the same time; absent: 4.
	Parallel *int `json:"parallel,omitempty" schema:"min=1,max=MaxParallel"`
	// MaxRepeats is 2 to 10; unset means 3. Of identical calls in a turn, only the first MaxRepeats-1 are
	// executed.
	MaxRepeats *int `json:"maxRepeats,omitempty" schema:"min=2,max=MaxMaxRepeats"`
	// ExpiryMs bounds waits for an approval or a client's result: 1 s to 30 days; unset means 24 h. The wait
	// for a client's result begins after the approval, and has its own ExpiryMs.
	ExpiryMs *int64 `json:"expiryMs,omitempty" schema:"min=MinExpiryMs,max=MaxExpiryMs"`
}

const TagSetTools Tag = "SetToolsEvent"

func (SetTools) Tag() Tag { return TagSetTools }

func (b SetTools) validate() error {
	if len(b.Tools) > MaxTools {
		return fieldf("tools", "%d tools (at most %d)", len(b.Tools), MaxTools)
	}
	names := map[string]bool{}
	for i, tool := range b.Tools {
		if err := tool.validate("tools." + strconv.Itoa(i)); err != nil {
			return err
		}
		if name := cmp.Or(tool.Name, tool.Pattern); names[name] {
			return fieldf("tools."+strconv.Itoa(i), "has the name of an earlier tool")
		} else {
			names[name] = true
		}
	}
	if len(b.Approve) > MaxTools {
		return fieldf("approve", "%d rules (at most %d)", len(b.Approve), MaxTools)
	}
	for i, rule := range b.Approve {
		if err := rule.validate("approve." + strconv.Itoa(i)); err != nil {
			return err
		}
	}
	for _, field := range []struct {
		name      string
		value     *int
		low, high int64
	}{
		{"maxSteps", b.MaxSteps, 1, MaxMaxSteps}, {"parallel", b.Parallel, 1, MaxParallel}, {"maxRepeats", b.MaxRepeats, 2, MaxMaxRepeats},
	} {
		if field.value != nil {
			if err := between(field.name, int64(*field.value), field.low, field.high); err != nil {
				return err
			}
		}
	}
	if b.ExpiryMs != nil {
		if err := between("expiryMs", *b.ExpiryMs, MinExpiryMs, MaxExpiryMs); err != nil {
			return err
		}
	}
	if data, err := json.Marshal(b); err != nil || len(data) > MaxToolsBytes {
		return fieldf("tools", "the event has %d bytes of JSON (at most %d)", len(data), MaxToolsBytes)
	}
	return nil
}

// IsIdle reports whether an approval rule cannot match any of the tools, whichever tools the workers
// have. Without tools, no rule is idle.
func (b SetTools) IsIdle(rule ApprovalRule) bool {
	// A tool of an MCP server has another name for models, and a rule may use either.
	isForModels := !strings.ContainsAny(rule.Tool, ":/")
	return len(b.Tools) > 0 && !slices.ContainsFunc(b.Tools, func(t Tool) bool {
		return MayOverlap(rule.Tool, cmp.Or(t.Pattern, t.Name)) || isForModels && strings.ContainsAny(t.Pattern, ":/*")
	})
}

// String describes the tools: "mcp:files/*, client tool ask; approve mcp:files/write_*; at most 8 steps".
func (b SetTools) String() string {
	var names []string
	for _, tool := range b.Tools {
		if tool.IsClient() {
			names = append(names, "client tool "+tool.Name)
		} else {
			names = append(names, tool.Pattern)
		}
	}
	parts := []string{cmp.Or(strings.Join(names, ", "), "none")}
	var rules []string
	for _, rule := range b.Approve {
		words := rule.Tool
		if rule.When != nil {
			words += " (conditionally)"
		}
		if b.IsIdle(rule) {
			words += " (matches none of the tools)"
		}
		rules = append(rules, words)
	}
	if len(rules) > 0 {
		parts = append(parts, "approve "+strings.Join(rules, ", "))
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if b.MaxSteps != nil {
		add("at most %d steps", *b.MaxSteps)
	}
	if b.Parallel != nil {
		add("%d calls in parallel", *b.Parallel)
	}
	if b.MaxRepeats != nil {
		add("identical calls: at most %d per turn", *b.MaxRepeats-1)
	}
	if b.ExpiryMs != nil {
		add("expiry %s", milliseconds(*b.ExpiryMs))
	}
	return strings.Join(parts, "; ")
}

func (b SetTools) Words() (subject, text string) { return "set tools", b.String() }
func (SetTools) Setting() string                 { return "Tools" }

func (SetTools) example() Body {
	return SetTools{
		Tools: ToolList{{Pattern: "fetch"}, {Pattern: "mcp:files/*"}, {
			Name: "ask", Description: "Ask the user", Parameters: Object(`{"type":"object","properties":{"question":{"type":"string"}}}`),
		}},
		Approve:  ApprovalRules{{Tool: "mcp:files/write_*"}, {Tool: "fetch", When: Object(`{"properties":{"url":{"pattern":"^http:"}}}`)}},
		MaxSteps: new(8), Parallel: new(2), MaxRepeats: new(4), ExpiryMs: new(int64(3_600_000)),
	}
}

// Bounds of [SetTools] and its elements.
const (
	MaxTools            = 128
	MaxToolsBytes       = 64 << 10 // of the JSON of a [SetTools]
	MaxPatternBytes     = 128
	MaxDescriptionBytes = 4 << 10
	MaxMaxSteps         = 100
	MaxParallel         = 16
	MaxMaxRepeats       = 10
	MinExpiryMs         = 1000
	MaxExpiryMs         = 30 * 24 * 60 * 60 * 1000 // 30 days
)

// Tool names tools of the worker (a string in JSON), or declares a tool of a client (an object).
//
//schema:rules {"anyOf":[{"type":"string","minLength":1,"maxLength":"$MaxPatternBytes"},{"$ref":"clientTool"}]}
type Tool struct {
	// Pattern names a tool of the worker, or mcp:SERVER/TOOL; * is a wildcard ([MatchTool]).
	Pattern     string // empty for a tool of a client
	Name        string // of a client's tool: 1 to 64 of A-Z a-z 0-9 _ -
	Description string // at most [MaxDescriptionBytes]
	Parameters  Object // JSON Schema of the arguments, at most [MaxSchemaBytes]; nil: any object
}

func (t Tool) validate(field string) error {
	if !t.IsClient() {
		return validatePattern(field, t.Pattern)
	}
	switch {
	case t.Name == "" && t.Description == "" && t.Parameters == nil:
		return fieldf(field, `want the name of a tool, like "fetch" or "mcp:files/*", or {"name":…,"description":…,"parameters":…}`)
	case t.Name == "" || !schemaName(t.Name):
		return fieldf(field+".name", "want 1 to 64 of A-Z a-z 0-9 _ -, got %s", quote(t.Name))
	case len(t.Description) > MaxDescriptionBytes:
		return fieldf(field+".description", "%d bytes (at most %d)", len(t.Description), MaxDescriptionBytes)
	}
	if err := text(field+".description", t.Description); err != nil || t.Parameters == nil {
		return err
	}
	return t.Parameters.validate(field+".parameters", MaxSchemaBytes)
}

// IsClient reports whether a client executes the tool.
func (t Tool) IsClient() bool { return t.Pattern == "" }

func (Tool) object() any { return clientTool{} }

// MarshalJSON writes a pattern as a string.
func (t Tool) MarshalJSON() ([]byte, error) {
	if !t.IsClient() {
		return json.Marshal(t.Pattern)
	}
	return json.Marshal(clientTool{t.Name, t.Description, t.Parameters})
}

// UnmarshalJSON reads the output of MarshalJSON. Validation reports any other JSON.
func (t *Tool) UnmarshalJSON(data []byte) error {
	var tool clientTool
	*t = Tool{}
	if json.Unmarshal(data, &t.Pattern) != nil && json.Unmarshal(data, &tool) == nil {
		*t = Tool{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters}
	}
	return nil
}

type clientTool struct {
	Name        string `json:"name" schema:"is=ToolName"`
	Description string `json:"description,omitempty" schema:"max=MaxDescriptionBytes"`
	Parameters  Object `json:"parameters,omitempty"` // the JSON Schema of the arguments, at most [MaxSchemaBytes]; absent: any object
}

// ToolList is a list of tools. An empty one is nil after decoding.
type ToolList []Tool

// UnmarshalJSON implements [json.Unmarshaler].
func (l *ToolList) UnmarshalJSON(data []byte) error { return unmarshalList((*[]Tool)(l), data) }

// ApprovalRule requires approvals of calls. In JSON, a rule without a condition is a string.
//
//schema:rules {"anyOf":[{"type":"string","minLength":1,"maxLength":"$MaxPatternBytes"},{"$ref":"conditionalRule"}]}
type ApprovalRule struct {
	Tool string // a pattern as in [Tool], or the name of a tool of a client
	// When is a JSON Schema of at most [MaxSchemaBytes]. Only calls whose arguments match it require
	// an approval; nil: all.
	When Object
}

func (r ApprovalRule) validate(field string) error {
	if r.Tool == "" {
		return fieldf(field, `want the name of a tool, like "fetch" or "mcp:files/*", or {"tool":…,"when":…}`)
	}
	if err := validatePattern(field, r.Tool); err != nil || r.When == nil {
		return err
	}
	return r.When.validate(field+".when", MaxSchemaBytes)
}

func (ApprovalRule) object() any { return conditionalRule{} }

// MarshalJSON writes a rule without a condition as a string.
func (r ApprovalRule) MarshalJSON() ([]byte, error) {
	if r.When == nil {
		return json.Marshal(r.Tool)
	}
	return json.Marshal(conditionalRule(r))
}

// UnmarshalJSON reads the output of MarshalJSON. Validation reports any other JSON.
func (r *ApprovalRule) UnmarshalJSON(data []byte) error {
	var rule conditionalRule
	*r = ApprovalRule{}
	if json.Unmarshal(data, &r.Tool) != nil && json.Unmarshal(data, &rule) == nil {
		*r = ApprovalRule(rule)
	}
	return nil
}

// conditionalRule is a rule for the calls whose arguments match a schema.
//
//schema:rules {"required":["tool","when"]}
type conditionalRule struct {
	Tool string `json:"tool" schema:"min=1,max=MaxPatternBytes"`
	When Object `json:"when,omitempty"` // a JSON Schema of at most [MaxSchemaBytes]
}

// ApprovalRules is a list of rules. An empty one is nil after decoding.
type ApprovalRules []ApprovalRule

// UnmarshalJSON implements [json.Unmarshaler].
func (l *ApprovalRules) UnmarshalJSON(data []byte) error {
	return unmarshalList((*[]ApprovalRule)(l), data)
}

func unmarshalList[T any](list *[]T, data []byte) error {
	err := json.Unmarshal(data, list)
	if len(*list) == 0 {
		*list = nil
	}
	return err
}

// MatchTool reports whether a pattern matches a name. A * matches any text, even with slashes.
func MatchTool(pattern, name string) bool {
	prefix, rest, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return pattern == name
	}
	if !strings.HasPrefix(name, prefix) {
		return false
	}
	name = name[len(prefix):]
	for {
		part, after, hasMore := strings.Cut(rest, "*")
		if !hasMore {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], after
	}
}

// MayOverlap returns false only if no name matches both patterns of [MatchTool].
func MayOverlap(a, b string) bool {
	if !strings.Contains(a, "*") {
		return MatchTool(b, a)
	}
	if !strings.Contains(b, "*") {
		return MatchTool(a, b)
	}
	headA, headB := a[:strings.Index(a, "*")], b[:strings.Index(b, "*")]
	tailA, tailB := a[strings.LastIndex(a, "*")+1:], b[strings.LastIndex(b, "*")+1:]
	return (strings.HasPrefix(headA, headB) || strings.HasPrefix(headB, headA)) &&
		(strings.HasSuffix(tailA, tailB) || strings.HasSuffix(tailB, tailA))
}

// ToolLimits are the limits of a [SetTools], with defaults.
type ToolLimits struct {
	MaxSteps, Parallel, MaxRepeats int
	Expiry                         time.Duration
}

// Limits returns the limits, with defaults for unset fields; b may be nil.
func (b *SetTools) Limits() ToolLimits {
	limits := ToolLimits{MaxSteps: 16, Parallel: 4, MaxRepeats: 3, Expiry: 24 * time.Hour}
	if b == nil {
		return limits
	}
	for _, field := range []struct {
		limit *int
		set   *int
	}{{&limits.MaxSteps, b.MaxSteps}, {&limits.Parallel, b.Parallel}, {&limits.MaxRepeats, b.MaxRepeats}} {
		if field.set != nil {
			*field.limit = *field.set
		}
	}
	if b.ExpiryMs != nil {
		limits.Expiry = time.Duration(*b.ExpiryMs) * time.Millisecond
	}
	return limits
}

func validatePattern(field, pattern string) error {
	if len(pattern) > MaxPatternBytes {
		return fieldf(field, "%d bytes (at most %d)", len(pattern), MaxPatternBytes)
	}
	return ValidateName(field, pattern)
}
