package event

import (
	"encoding/json"
	"reflect"
	"slices"
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
	TagSetRequestSettings    Tag = "SetRequestSettingsEvent"
	TagSetTools              Tag = "SetToolsEvent"
	TagBudgetSet             Tag = "BudgetSetEvent"
	TagSetCompaction         Tag = "SetCompactionEvent"
	TagApprovalDecided       Tag = "ApprovalDecidedEvent"
	TagSessionStarted        Tag = "SessionStartedEvent"
	TagSessionEnded          Tag = "SessionEndedEvent"
	TagLLMRequestStarted     Tag = "LLMRequestStartedEvent"
	TagLLMRequestCompleted   Tag = "LLMRequestCompletedEvent"
	TagLLMRequestInterrupted Tag = "LLMRequestInterruptedEvent"
	TagLLMRequestFailed      Tag = "LLMRequestFailedEvent"
	TagLLMRequestFellBack    Tag = "LLMRequestFellBackEvent"
	TagLLMAttemptEnded       Tag = "LLMAttemptEndedEvent"
	TagBudgetExceeded        Tag = "BudgetExceededEvent"
	TagToolsOffered          Tag = "ToolsOfferedEvent"
	TagApprovalRequested     Tag = "ApprovalRequestedEvent"
	TagHookApplied           Tag = "HookAppliedEvent"
	TagCompacted             Tag = "CompactedEvent"
	TagContentRefused        Tag = "ContentRefusedEvent"
	TagInputRejected         Tag = "InputRejectedEvent"
	TagTextDelta             Tag = "TextDeltaEvent"
	TagReasoningDelta        Tag = "ReasoningDeltaEvent"
	TagToolProgress          Tag = "ToolProgressEvent"
)

// Class says who writes an event and whether it is recorded.
type Class int

// Classes of events.
const (
	ClassInput     Class = iota + 1 // sent by clients; the session writes some of them too
	ClassLifecycle                  // written only by the session; only [Compacted] and [ContentRefused] change what models receive
	ClassEphemeral                  // streamed and never recorded
)

type bodyDecoder func(fields map[string]json.RawMessage) (Body, error)

type kind struct {
	tag         Tag
	class       Class
	decode      bodyDecoder
	endsRequest bool
	fields      map[string]reflect.Type // of the body
	ids         idMapper                // nil: the body has no ids
	names       []string                // of the body and the envelope, without "_tag" and "id"
	// keepsExtra: an input may have unknown fields, which are recorded.
	keepsExtra bool
}

func kindOf[T Body](class Class) kind {
	var body T
	_, endsRequest := any(body).(RequestEnd)
	fields, names := fieldsOf(reflect.TypeFor[T]())
	return kind{tag: body.Tag(), class: class, decode: decodeBody[T], endsRequest: endsRequest, fields: fields, ids: idMapperOf(reflect.TypeFor[T]()), names: append(names, envelopeNames[2:]...)}
}

// content is a kind of input with metadata of its sender in unknown fields.
func content[T Body]() kind {
	k := kindOf[T](ClassInput)
	k.keepsExtra = true
	return k
}

// catalog is in documentation order.
var catalog = []kind{
	content[SystemPrompt](),
	content[UserMessage](),
	content[AssistantMessage](),
	content[FileAttachment](),
	content[ToolCall](),
	content[ToolResult](),
	content[Note](),
	kindOf[SetRetryConfig](ClassInput),
	kindOf[SetProviderConfig](ClassInput),
	kindOf[SetTimeout](ClassInput),
	kindOf[SetDeliveryPolicy](ClassInput),
	kindOf[SetRequestSettings](ClassInput),
	kindOf[SetTools](ClassInput),
	kindOf[BudgetSet](ClassInput),
	kindOf[SetCompaction](ClassInput),
	kindOf[ApprovalDecided](ClassInput),
	kindOf[SessionStarted](ClassLifecycle),
	kindOf[SessionEnded](ClassLifecycle),
	kindOf[LLMRequestStarted](ClassLifecycle),
	kindOf[LLMRequestCompleted](ClassLifecycle),
	kindOf[LLMRequestInterrupted](ClassLifecycle),
	kindOf[LLMRequestFailed](ClassLifecycle),
	kindOf[LLMRequestFellBack](ClassLifecycle),
	kindOf[LLMAttemptEnded](ClassLifecycle),
	kindOf[BudgetExceeded](ClassLifecycle),
	kindOf[ToolsOffered](ClassLifecycle),
	kindOf[ApprovalRequested](ClassLifecycle),
	kindOf[HookApplied](ClassLifecycle),
	kindOf[Compacted](ClassLifecycle),
	kindOf[ContentRefused](ClassLifecycle),
	kindOf[InputRejected](ClassLifecycle),
	kindOf[TextDelta](ClassEphemeral),
	kindOf[ReasoningDelta](ClassEphemeral),
	kindOf[ToolProgress](ClassEphemeral),
}

// Tags returns all tags, inputs first.
func Tags() []Tag {
	tags := make([]Tag, len(catalog))
	for i, entry := range catalog {
		tags[i] = entry.tag
	}
	return tags
}

// lookup returns a kind without a decoder for an unknown tag.
func lookup(tag Tag) kind {
	for _, entry := range catalog {
		if entry.tag == tag || strings.TrimSuffix(string(entry.tag), "Event") == string(tag) {
			return entry
		}
	}
	return kind{tag: tag}
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
	return slices.ContainsFunc(catalog, func(k kind) bool { return k.tag == t && k.endsRequest })
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
