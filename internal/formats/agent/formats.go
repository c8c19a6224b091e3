package agent

import (
	"maps"
	"slices"
)

// Format is a format of logs.
type Format string

const (
	// Claude is the output of Claude Code with --output-format stream-json
	// (https://code.claude.com/docs/en/headless), or a session file of ~/.claude/projects.
	// Both have the same messages; a line has the same uuid in both.
	Claude Format = "claude"
	// Codex is a rollout file of the Codex CLI, ~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl:
	// https://github.com/openai/codex/blob/main/codex-rs/protocol/src/models.rs. Files of 2025 before
	// September have items without the envelope of type and payload.
	Codex Format = "codex"
	// Droid is the output of the Droid CLI with --output-format stream-json, or a session file of
	// ~/.factory/sessions.
	Droid Format = "droid"
)

type formatSpec struct {
	usage string
	// signs are the objects that only this format has: the type, "" for none, and fields that are set.
	signs     [][]string
	wrappers  []wrapper
	newParser func(repeats) parser // of one log
}

var formats = map[Format]formatSpec{
	Claude: {
		usage: "Claude Code: --output-format stream-json, or a file of ~/.claude/projects",
		signs: [][]string{
			{"user", "message"}, {"assistant", "message"},
			{"system", "mcp_servers"}, {"system", "permissionMode"}, {"system", "apiKeySource"}, {"system", "parentUuid"},
			{"result", "num_turns"}, {"result", "total_cost_usd"}, {"summary", "leafUuid"}, {"file-history-snapshot"}, {"queue-operation"},
		},
		wrappers:  claudeWrappers,
		newParser: func(r repeats) parser { return &claude{r} },
	},
	Codex: {
		usage: "Codex CLI: a rollout file of ~/.codex/sessions",
		signs: [][]string{
			{"session_meta", "payload"}, {"turn_context", "payload"}, {"response_item", "payload"}, {"event_msg", "payload"}, {"compacted", "payload"},
			{"", "id", "timestamp", "instructions"}, {"", "id", "timestamp", "git"},
		},
		wrappers:  codexWrappers,
		newParser: func(r repeats) parser { return &codex{repeats: r} },
	},
	Droid: {
		usage: "Droid CLI: --output-format stream-json, or a file of ~/.factory/sessions",
		signs: [][]string{
			{"session_start", "id"}, {"message", "role", "text"}, {"tool_call", "toolName"}, {"tool_call", "toolId"},
			{"tool_result", "toolId"}, {"tool_result", "id", "value"}, {"tool_result", "id", "error"}, {"completion", "finalText"},
		},
		wrappers:  droidWrappers,
		newParser: func(r repeats) parser { return &droid{r} },
	},
}

// Formats returns the formats, sorted.
func Formats() []Format { return slices.Sorted(maps.Keys(formats)) }

// Usage describes the logs of a format for help texts, on one line without a period.
func (f Format) Usage() string { return formats[f].usage }

// recognizes reports whether an object is of this format and of no other.
func (f Format) recognizes(p probe) bool {
	return slices.ContainsFunc(formats[f].signs, func(sign []string) bool {
		return p.Type == sign[0] && !slices.ContainsFunc(sign[1:], func(field string) bool { return !p.has(field) })
	})
}

func (f Format) newParser() parser {
	spec := formats[f]
	return spec.newParser(repeats{wrappers: spec.wrappers})
}
