package reducer

import (
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Bounds of the messages of a context: a worker has all of them in memory, and a run that continues as new
// writes them in one workflow task. Signals of 200 bytes can refer to inputs of megabytes.
const (
	// MaxMessageBytes is the size of the messages, see [ReducedContext.Size], beyond which large input is rejected.
	MaxMessageBytes = 64 << 20
	// maxSmallInput is the size of input that is never rejected for the size of the messages, so that a context
	// always answers, which compacts it.
	maxSmallInput = 64 << 10
)

// Size approximates the memory of the messages and the pending attachments in bytes.
func (c ReducedContext) Size() int {
	size := bytesOf(c.PendingAttachments)
	for i := range c.Messages {
		m := &c.Messages[i]
		size += 200 + len(m.Content) + bytesOf(m.Attachments)
		if m.ProviderState != nil {
			size += 200 + len(m.ProviderState.Data)
		}
		for j := range m.ToolCalls {
			size += 100 + len(m.ToolCalls[j].Arguments)
		}
	}
	return size
}

// Room returns how many bytes of input the context has room for. It is never 0.
func (c ReducedContext) Room() int { return max(MaxMessageBytes-c.Size(), maxSmallInput) }

func bytesOf(attachments []Attachment) (size int) {
	for i := range attachments {
		size += 300 + len(attachments[i].Source.Data) + len(attachments[i].Source.URL)
	}
	return size
}

// addedBy returns how much events add to the messages in bytes.
func addedBy(events []event.Event) (size int) {
	for _, e := range events {
		switch body := e.Body.(type) {
		case event.SystemPrompt:
			size += len(body.Content)
		case event.UserMessage:
			size += len(body.Content)
		case event.AssistantMessage:
			size += len(body.Content)
			if body.ProviderState != nil {
				size += len(body.ProviderState.Data)
			}
		case event.FileAttachment:
			size += len(body.Source.Data) + len(body.Source.URL)
		case event.ToolCall:
			size += len(body.Parameters)
		case event.ToolResult:
			size += max(len(body.Value), len(body.Error))
		}
	}
	return size
}

// sizeProblem returns why events are too large for the context; "" if they are not.
func (d *decision) sizeProblem(events []event.Event) string {
	added := addedBy(events)
	if added <= maxSmallInput || d.Rules < Rules2 {
		return ""
	}
	if size := d.Reduced.Size(); size+added > MaxMessageBytes {
		return fmt.Sprintf("the context has %d bytes of messages, and the input %d (at most %d; send a short message, which compacts the context, or use another context)",
			size, added, MaxMessageBytes)
	}
	return ""
}
