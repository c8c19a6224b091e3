package agui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

// messagesOf returns the messages that the log has.
func messagesOf(t *thread.Thread) (messages []message) {
	for _, in := range t.Entries {
		switch {
		case in.User != nil:
			messages = append(messages, userMessage(in.User))
		case in.Result != nil:
			messages = append(messages, resultMessage(in.Result))
		case in.Step.IsRecorded():
			messages = append(messages, stepMessages(in.Step)...)
		}
	}
	return messages
}

func userMessage(u *thread.User) message {
	m := message{ID: cmp.Or(u.Event.ClientEventID, u.Event.ID), Role: roleUser, Content: quoted(u.Content)}
	if len(u.Files) == 0 {
		return m
	}
	var parts []part
	for _, f := range u.Files {
		parts = append(parts, part{Type: partType(f.MediaType), Source: &source{Type: "url", Value: f.URL, MIMEType: f.MediaType}})
	}
	m.Content, _ = json.Marshal(append(parts, part{Type: "text", Text: u.Content})) // strings always encode
	return m
}

func partType(mediaType string) string {
	kind, _, _ := strings.Cut(mediaType, "/")
	if slices.Contains([]string{"image", "audio", "video"}, kind) {
		return kind
	}
	return "document"
}

func stepMessages(s *thread.Step) (messages []message) {
	id := stepID(s)
	if text := s.Reasoning.String(); text != "" {
		messages = append(messages, message{ID: reasoningID(id), Role: roleReasoning, Content: quoted(text)})
	}
	answer := message{ID: id, Role: roleAssistant, Content: quoted(s.Text.String())}
	for _, c := range s.Calls {
		answer.ToolCalls = append(answer.ToolCalls, toolCall{c.ToolCallID, "function", function{c.ToolName, gateway.Arguments(c.ToolCall)}})
	}
	return append(messages, answer)
}

// stepID returns the id of the message of a step.
func stepID(s *thread.Step) string {
	if s.IsRecorded() && s.Answer.RequestID == "" { // by a client
		return cmp.Or(s.Event.ClientEventID, s.Event.ID)
	}
	return s.Request.ID + "/" + strconv.Itoa(s.Attempt)
}

func reasoningID(id string) string { return id + "/reasoning" }

func resultMessage(c *thread.Call) message {
	text, isError := c.Output()
	m := message{ID: cmp.Or(c.ResultEvent.ClientEventID, c.ResultEvent.ID), Role: roleTool, ToolCallID: c.ToolCallID, Content: quoted(text)}
	if isError {
		m.Error = text
	}
	return m
}

func snapshotOf(messages []message) frame {
	return frame{Type: "MESSAGES_SNAPSHOT", Messages: append([]message{}, messages...)}
}

// pause returns the end of a run that only clients can continue.
func pause(r *thread.Request) (last frame, ok bool) {
	results, decisions := r.Waiting()
	of := outcome{Type: "success"}
	for _, c := range results {
		of.Pending = append(of.Pending, c.ToolCallID)
	}
	for _, c := range decisions {
		of.Type = "interrupt"
		of.Interrupts = append(of.Interrupts, interrupt{
			ID: c.ToolCallID, Reason: "approval_required", Message: "Allow " + c.ToolName + "?", ToolCallID: c.ToolCallID,
			ResponseSchema: decisionSchema, ExpiresAt: c.Approval.ExpiresAt.Format("2006-01-02T15:04:05.000Z"),
		})
	}
	if len(decisions) > 0 {
		of.Pending = nil
	}
	return frame{Type: "RUN_FINISHED", Outcome: &of}, len(results)+len(decisions) > 0
}
