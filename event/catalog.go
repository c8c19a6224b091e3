package event

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
)

// Tag is the type of an event, the value of "_tag".
type Tag string

// Body is the part of an event that depends on its tag. Only this package implements it: each type has a file with
// its fields and all that describes it. Some types are also a [RequestEvent], a [RequestEnd] or a [Setting], or have
// a Line for the log.
type Body interface {
	Tag() Tag
	// Words returns the event as a subject and a text for terminals. The text may contain control characters.
	Words() (subject, text string)
	validate() error
	example() Body
}

// Class says who writes an event and whether it is recorded.
type Class int

// Classes of events.
const (
	ClassInput     Class = iota + 1 // sent by clients; the session writes some of them too
	ClassLifecycle                  // written only by the session; only [Compacted] and [ContentRefused] change what models receive
	ClassEphemeral                  // streamed and never recorded
)

// catalog is in documentation order.
var catalog = slices.Concat(
	keepingExtra(kindsOf(ClassInput, SystemPrompt{}, UserMessage{}, AssistantMessage{}, FileAttachment{}, ToolCall{}, ToolResult{}, Note{})),
	kindsOf(ClassInput,
		SetRetryConfig{}, SetProviderConfig{}, SetTimeout{}, SetDeliveryPolicy{}, SetRequestSettings{}, SetTools{}, BudgetSet{},
		SetCompaction{}, SetDetails{}, ApprovalDecided{}, AnswerRequested{},
	),
	kindsOf(ClassLifecycle,
		SessionStarted{}, SessionEnded{},
		LLMRequestStarted{}, LLMRequestCompleted{}, LLMRequestInterrupted{}, LLMRequestFailed{}, LLMRequestFellBack{}, LLMAttemptEnded{},
		BudgetExceeded{}, ToolsOffered{}, ApprovalRequested{}, HookApplied{}, Compacted{}, ContentRefused{}, InputRejected{},
	),
	kindsOf(ClassEphemeral, TextDelta{}, ReasoningDelta{}, ToolProgress{}),
)

type kind struct {
	tag    Tag
	class  Class
	body   Body                    // the zero value
	fields map[string]reflect.Type // of the body
	ids    idMapper                // nil: the body has no ids
	names  []string                // of the body and the envelope, without "_tag" and "id"
	// keepsExtra: an input may have unknown fields, which are recorded: metadata of its sender.
	keepsExtra bool
}

func kindsOf(class Class, bodies ...Body) (kinds []kind) {
	for _, body := range bodies {
		t := reflect.TypeOf(body)
		fields, names := fieldsOf(t)
		kinds = append(kinds, kind{
			tag: body.Tag(), class: class, body: body, fields: fields, ids: idMapperOf(t), names: append(names, envelopeNames[2:]...),
		})
	}
	return kinds
}

func keepingExtra(kinds []kind) []kind {
	for i := range kinds {
		kinds[i].keepsExtra = true
	}
	return kinds
}

// Tags returns all tags, inputs first.
func Tags() []Tag {
	tags := make([]Tag, len(catalog))
	for i, entry := range catalog {
		tags[i] = entry.tag
	}
	return tags
}

// Examples returns a valid body of every tag, in the order of [Tags]. A log of a context demo could contain each after a
// user message demo:0001 and an answer demo:0002.
func Examples() []Body {
	bodies := make([]Body, len(catalog))
	for i, entry := range catalog {
		bodies[i] = entry.body.example()
	}
	return bodies
}

// lookup returns a kind without a body for an unknown tag. Input may omit the suffix "Event".
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
	if k := lookup(t); k.tag == t {
		return k.class
	}
	return 0
}

// IsInput reports whether clients may send events with the tag.
func (t Tag) IsInput() bool { return t.Class() == ClassInput }

// IsActivity reports whether a context is active when it records an event with the tag: any but the start and the end of
// a session, and its details.
func (t Tag) IsActivity() bool {
	return t != TagSessionStarted && t != TagSessionEnded && t != TagSetDetails
}

// EndsRequest reports whether events with the tag end a request.
func (t Tag) EndsRequest() bool {
	_, ok := lookup(t).body.(RequestEnd)
	return ok
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

// RequestEvent is the body of an event about a request.
type RequestEvent interface {
	Body
	// Request returns the id of the request; "" for a message or a call of a client.
	Request() string
}

// RequestEnd is the body of an event that ends a request. Every request ends exactly once in a log.
type RequestEnd interface {
	RequestEvent
	// Unanswered returns the ThroughEventID: the newest event that stays unanswered. After a completed
	// request, "" means none; after any other, it means the newest event in the request.
	Unanswered() string
}

// RequestOf returns the id of the request that a body is about; "" for none.
func RequestOf(body Body) string {
	if about, ok := body.(RequestEvent); ok {
		return about.Request()
	}
	return ""
}

// RequiresAnswer reports whether the model answers an event.
func RequiresAnswer(body Body) bool {
	asks, ok := body.(interface{ Triggers() bool })
	return ok && asks.Triggers()
}

// Setting is the body of an event that changes a setting of the context.
type Setting interface {
	Body
	String() string  // the new values
	Setting() string // what is set, as a title: "Model"
}

// Line is a line of the log of a worker, without the content of messages, the arguments and results of tools, and
// secrets. Fields are keys and values; zero values need not be logged.
type Line struct {
	Level   slog.Level
	Message string
	Fields  []any
}

// LineOf returns the line for a recorded event.
func LineOf(body Body) Line {
	switch b := body.(type) {
	case interface{ Line() Line }:
		return b.Line()
	case Setting:
		return Line{slog.LevelInfo, "setting changed", []any{"type", string(body.Tag())}}
	}
	return Line{slog.LevelDebug, "event recorded", []any{"type", string(body.Tag())}}
}

const (
	maxLoggedError = 500 // bytes of the error of a provider in a line
	maxLoggedName  = 200
)

// LoggedName removes secrets from a name that a client, a model or a provider chose.
func LoggedName(name string) string { return RedactOutput(name, maxLoggedName) }
