package reducer

import (
	"github.com/seed-9ed7edd4/chronicle/event"
)

// SettingsOf returns the settings of the next attempt: those of the context, overridden by those of
// the newest unanswered message that triggers a turn and is not queued. A tool choice other than none
// applies to the first step of a turn only: a model that must call a tool would never end the turn.
// After the last step, the model must not call tools.
func SettingsOf(s Session) event.RequestSettings {
	settings, ofMessage, r := s.Reduced.Config.Request, s.TriggerSettings, s.Request
	if r != nil && r.Limit != "" && event.Counter(s.Trigger) > event.Counter(r.Limit) {
		ofMessage = r.Settings
	}
	if ofMessage != nil {
		settings = settings.Override(*ofMessage)
	}
	switch choice := settings.ToolChoice; {
	case r == nil || r.Steps == 0:
	case r.Steps >= s.Reduced.Config.Tools.Limits().MaxSteps:
		settings.ToolChoice = &event.ToolChoice{Mode: event.ToolChoiceNone}
	case choice != nil && choice.Mode != event.ToolChoiceNone:
		settings.ToolChoice = nil
	}
	return settings
}

// ThroughOf returns the newest event in the next attempt, besides those of its own request.
func ThroughOf(s Session) string {
	if s.Request != nil && s.Request.Limit != "" {
		return s.Request.Limit
	}
	return s.LastEventID()
}

// MessagesOf returns the messages of the next attempt: if the request has a limit, those up to it
// and those of the request; if it has a compaction, those that it covers. They must not be modified.
func MessagesOf(s Session) []Message {
	if s.Request != nil && s.Request.Compaction != nil {
		return s.Reduced.Messages[:coveredBy(s.Reduced.Messages, s.Request.Compaction.Through)]
	}
	if s.Request == nil || s.Request.Limit == "" {
		return s.Reduced.Messages
	}
	limit := event.Counter(s.Request.Limit)
	var included []Message
	isIncluded := false
	for _, m := range s.Reduced.Messages {
		// A result belongs to the answer before it.
		if m.Role != RoleTool {
			isIncluded = m.Role == RoleSystem || m.Summary || event.Counter(m.EventID) <= limit || m.RequestID == s.Request.ID
		}
		if isIncluded {
			included = append(included, m)
		}
	}
	return included
}
