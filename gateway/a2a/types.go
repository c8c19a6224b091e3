package a2a

import (
	"encoding/json"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// task is a Task of A2A.
type task struct {
	ID        string     `json:"id"`
	ContextID string     `json:"contextId"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts,omitempty"`
	History   []message  `json:"history,omitempty"`
	Metadata  metadata   `json:"metadata,omitempty"` // finishReason: why a completed answer may be incomplete, length or content_filter
}

type metadata map[string]any

type status struct {
	State     state    `json:"state"`
	Message   *message `json:"message,omitempty"`
	Timestamp string   `json:"timestamp"`
}

type state string

const (
	stateSubmitted     state = "TASK_STATE_SUBMITTED"
	stateWorking       state = "TASK_STATE_WORKING"
	stateInputRequired state = "TASK_STATE_INPUT_REQUIRED"
	stateCompleted     state = "TASK_STATE_COMPLETED"
	stateFailed        state = "TASK_STATE_FAILED"
	stateCanceled      state = "TASK_STATE_CANCELED"
	stateRejected      state = "TASK_STATE_REJECTED"
)

func (s state) isTerminal() bool {
	return s == stateCompleted || s == stateFailed || s == stateCanceled || s == stateRejected
}

type role string

const (
	roleUser  role = "ROLE_USER"
	roleAgent role = "ROLE_AGENT"
)

type message struct {
	MessageID        string          `json:"messageId"`
	ContextID        string          `json:"contextId,omitempty"`
	TaskID           string          `json:"taskId,omitempty"`
	Role             role            `json:"role"`
	Parts            []part          `json:"parts"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
	ReferenceTaskIDs []string        `json:"referenceTaskIds,omitempty"`
}

// part has one of Text, Raw, URL and Data.
type part struct {
	Text      *string         `json:"text,omitempty"`
	Raw       string          `json:"raw,omitempty"`
	URL       string          `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
}

func textPart(text string) part { return part{Text: &text} }

func dataPart(value any) part {
	data, _ := json.Marshal(value) // texts and JSON always encode
	return part{Data: data, MediaType: "application/json"}
}

type artifact struct {
	ArtifactID string `json:"artifactId"`
	Parts      []part `json:"parts"`
}

// streamResponse is an event of a stream. It has one of the fields.
type streamResponse struct {
	Task           *task           `json:"task,omitempty"`
	StatusUpdate   *statusUpdate   `json:"statusUpdate,omitempty"`
	ArtifactUpdate *artifactUpdate `json:"artifactUpdate,omitempty"`
}

type statusUpdate struct {
	TaskID    string   `json:"taskId"`
	ContextID string   `json:"contextId"`
	Status    status   `json:"status"`
	Metadata  metadata `json:"metadata,omitempty"`
}

type artifactUpdate struct {
	TaskID    string   `json:"taskId"`
	ContextID string   `json:"contextId"`
	Artifact  artifact `json:"artifact"`
	Append    bool     `json:"append,omitempty"`
	LastChunk bool     `json:"lastChunk,omitempty"`
}

// toolCall is the data of a message about a call of a tool: the call, its result, or that it waits for a client.
type toolCall struct {
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
	Wants      string          `json:"wants,omitempty"`
	// What a client decides: "approve", also with other arguments, or "deny".
	Decision event.Decision `json:"decision,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// What a call waits for.
const (
	wantsDecision = "decision"
	wantsResult   = "result"
)

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
