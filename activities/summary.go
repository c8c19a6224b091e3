package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const summaryInstruction = "Summarise the conversation above. Your summary replaces it, and you continue from the summary alone. " +
	"Keep what later answers may need: facts, decisions, names, numbers, file names and other identifiers, what the user wants and prefers, " +
	"open questions and tasks, and the outcomes of tool calls. Do not answer questions and do not call tools. " +
	"Write only the summary, in the language of the conversation, with at most %d words."

const maxSummaryTokens = 4096 // including reasoning

// summaryTokens limits the output of a summary: a small window must have room for the input.
func summaryTokens(window int) int { return max(1, min(maxSummaryTokens, window/8)) }

// summarySettings lets the model write free text.
func summarySettings(settings event.RequestSettings, window int) event.RequestSettings {
	settings.ResponseFormat, settings.Stop = nil, nil
	settings.ToolChoice = &event.ToolChoice{Mode: event.ToolChoiceNone}
	settings.MaxTokens = new(summaryTokens(window))
	settings.Extra = summaryExtra(settings.Extra, *settings.MaxTokens)
	return settings
}

// summaryExtra removes the fields that would override other settings of a summary, and those that
// let reasoning take all of its output, which providers reject.
func summaryExtra(extra event.Object, maxTokens int) event.Object {
	fields := extra.Fields()
	n := len(fields)
	for _, name := range []string{"response_format", "stop", "tool_choice", "max_tokens", "max_completion_tokens"} {
		delete(fields, name)
	}
	for name, limit := range map[string]string{"thinking": "budget_tokens", "reasoning": "max_tokens"} {
		var tokens int
		if json.Unmarshal(event.Object(fields[name]).Fields()[limit], &tokens) == nil && tokens >= maxTokens {
			delete(fields, name)
		}
	}
	if len(fields) == n {
		return extra
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return extra
	}
	return data
}

// summaryMessages returns the covered messages, followed by the instruction. The messages are exactly as
// earlier requests sent them, so that the provider reads them from its prompt cache. If they exceed the
// window, summaryMessages omits the oldest ones, and as a last resort shortens the messages. omitted is the number
// of messages that are not complete.
func summaryMessages(ctx context.Context, model Model, r ModelRequest, window int) (_ []reducer.Message, omitted int, err error) {
	limit := window*9/10 - summaryTokens(window) // the count is an estimate
	instruction := reducer.Message{
		Role: reducer.RoleUser, Content: fmt.Sprintf(summaryInstruction, min(reducer.MaxSummaryWords, max(1, summaryTokens(window)/2))),
	}
	if len(r.Messages) == 0 {
		return nil, 0, &ModelError{Kind: "summary", Failure: event.FailureBadRequest, Err: errors.New("the messages to summarise are not in the conversation any more")}
	}
	system, covered := r.Messages, []reducer.Message(nil)
	for i, m := range r.Messages {
		if m.Role != reducer.RoleSystem {
			system, covered = r.Messages[:i:i], r.Messages[i:]
			break
		}
	}
	with := func(covered []reducer.Message) []reducer.Message {
		return append(slices.Concat(system, covered), instruction)
	}
	var failure error
	fits := func(covered []reducer.Message) bool {
		r.Messages = with(covered)
		tokens, err := model.InputTokens(ctx, r, limit)
		failure = cmp.Or(failure, err)
		return err != nil || tokens <= limit
	}
	if fits(covered) {
		return with(covered), 0, failure
	}
	starts := []int{0}
	for i, m := range covered {
		if i > 0 && m.Role != reducer.RoleTool {
			starts = append(starts, i)
		}
	}
	n := sort.Search(len(starts), func(n int) bool { return fits(covered[starts[n]:]) })
	if n < len(starts) {
		return with(covered[starts[n]:]), starts[n], failure
	}
	newest := covered[starts[n-1]:]
	bound := maxBytesPerToken * max(0, limit)
	for bound > 0 && !fits(shortened(newest, bound)) {
		bound /= 2
	}
	return with(shortened(newest, bound)), len(covered), failure
}

// maxBytesPerToken is the length of a long token in the vocabularies of tokenizers.
const maxBytesPerToken = 16

// shortened bounds each text of the messages, in bytes, and omits attachments and provider state.
func shortened(messages []reducer.Message, limit int) []reducer.Message {
	short := slices.Clone(messages)
	bound := func(text string) string {
		text, isCut := truncate(text, limit, wire.MaxEventBytes)
		if isCut {
			text += "…"
		}
		return text
	}
	for i := range short {
		m := &short[i]
		m.Content, m.Attachments, m.ProviderState = bound(m.Content), nil, nil
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for n := range m.ToolCalls {
			m.ToolCalls[n].Arguments = bound(m.ToolCalls[n].Arguments)
		}
	}
	return short
}
