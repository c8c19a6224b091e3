package event

import (
	"encoding/json"
	"strings"
)

// Tag is the type of an event, the value of "_tag".
type Tag string

// Tags. Input may omit the suffix "Event".
const (
	TagSystemPrompt          Tag = "SystemPromptEvent"
	TagUserMessage           Tag = "UserMessageEvent"
	TagAssistantMessage      Tag = "AssistantMessageEvent"
	TagFileAttachment        Tag = "FileAttachmentEvent"
	TagToolCall              Tag = "ToolCallEvent"
	TagToolResult            Tag = "ToolResultEvent"
	TagNote                  Tag = "NoteEvent"
	TagSetRetryConfig        Tag = "SetRetryConfigEvent"
	TagSetProviderConfig     Tag = "SetProviderConfigEvent"
	TagSetTimeout            Tag = "SetTimeoutEvent"
	TagSetDeliveryPolicy     Tag = "SetDeliveryPolicyEvent"
	TagSessionStarted        Tag = "SessionStartedEvent"
	TagSessionEnded          Tag = "SessionEndedEvent"
	TagLLMRequestStarted     Tag = "LLMRequestStartedEvent"
	TagLLMRequestCompleted   Tag = "LLMRequestCompletedEvent"
	TagLLMRequestInterrupted Tag = "LLMRequestInterruptedEvent"
	TagLLMRequestFailed      Tag = "LLMRequestFailedEvent"
	TagLLMRequestFellBack    Tag = "LLMRequestFellBackEvent"
	TagInputRejected         Tag = "InputRejectedEvent"
	TagTextDelta             Tag = "TextDeltaEvent"
)

// Class says who writes an event and whether it is recorded.
type Class int

const (
	// ClassInput events come from clients; the session writes some of them too.
	ClassInput Class = iota + 1
	// ClassLifecycle events are written only by the session and do not change the
	// conversation.
	ClassLifecycle
	// ClassEphemeral events are streamed and never recorded.
	ClassEphemeral
)

type bodyDecoder func(fields map[string]json.RawMessage) (Body, error)

// catalog lists every tag once, in documentation order.
var catalog = []struct {
	tag    Tag
	class  Class
	decode bodyDecoder
}{
	{TagSystemPrompt, ClassInput, decodeBody[SystemPrompt]},
	{TagUserMessage, ClassInput, decodeBody[UserMessage]},
	{TagAssistantMessage, ClassInput, decodeBody[AssistantMessage]},
	{TagFileAttachment, ClassInput, decodeBody[FileAttachment]},
	{TagToolCall, ClassInput, decodeBody[ToolCall]},
	{TagToolResult, ClassInput, decodeBody[ToolResult]},
	{TagNote, ClassInput, decodeBody[Note]},
	{TagSetRetryConfig, ClassInput, decodeBody[SetRetryConfig]},
	{TagSetProviderConfig, ClassInput, decodeBody[SetProviderConfig]},
	{TagSetTimeout, ClassInput, decodeBody[SetTimeout]},
	{TagSetDeliveryPolicy, ClassInput, decodeBody[SetDeliveryPolicy]},
	{TagSessionStarted, ClassLifecycle, decodeBody[SessionStarted]},
	{TagSessionEnded, ClassLifecycle, decodeBody[SessionEnded]},
	{TagLLMRequestStarted, ClassLifecycle, decodeBody[LLMRequestStarted]},
	{TagLLMRequestCompleted, ClassLifecycle, decodeBody[LLMRequestCompleted]},
	{TagLLMRequestInterrupted, ClassLifecycle, decodeBody[LLMRequestInterrupted]},
	{TagLLMRequestFailed, ClassLifecycle, decodeBody[LLMRequestFailed]},
	{TagLLMRequestFellBack, ClassLifecycle, decodeBody[LLMRequestFellBack]},
	{TagInputRejected, ClassLifecycle, decodeBody[InputRejected]},
	{TagTextDelta, ClassEphemeral, decodeBody[TextDelta]},
}

// Tags returns all tags, inputs first.
func Tags() []Tag {
	tags := make([]Tag, len(catalog))
	for i, entry := range catalog {
		tags[i] = entry.tag
	}
	return tags
}

// lookup finds a tag by its full or short form. The decoder is nil for an unknown tag.
func lookup(tag Tag) (Tag, bodyDecoder) {
	for _, entry := range catalog {
		if entry.tag == tag || strings.TrimSuffix(string(entry.tag), "Event") == string(tag) {
			return entry.tag, entry.decode
		}
	}
	return tag, nil
}

// Class returns the class of the tag; 0 if unknown.
func (t Tag) Class() Class {
	for _, entry := range catalog {
		if entry.tag == t {
			return entry.class
		}
	}
	return 0
}

// IsInput reports whether clients may send events with the tag.
func (t Tag) IsInput() bool { return t.Class() == ClassInput }

// EndsRequest reports whether events with the tag end a request.
func (t Tag) EndsRequest() bool {
	return t == TagLLMRequestCompleted || t == TagLLMRequestInterrupted || t == TagLLMRequestFailed
}

func tagList() string {
	var names []string
	for _, entry := range catalog {
		if entry.class == ClassInput {
			names = append(names, string(entry.tag))
		}
	}
	return strings.Join(names, ", ")
}
