package event

import (
	"cmp"
	"fmt"
	"log/slog"
)

// ContentRefused records that a provider refuses content of the conversation. Later requests to the model
// contain a note or nothing in its place; other models still receive it. If the request fails nevertheless, the
// content was not the reason, and its [LLMRequestFailed] or [LLMRequestFellBack] withdraws this event.
//
//doc:effect when a provider [refuses content](#refused-content) of the conversation, which later requests to the model do not contain
type ContentRefused struct {
	RequestID  string `json:"requestId" schema:"id,min=1"`
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	// `images`, `pdfs`, `audio`: attachments, which become notes; `calls`: tool calls and results, which are sent as
	// text; `state`: provider state, which is not sent; `schemas`: those of tools, which then accept any object;
	// `tools`: tools, which are not offered.
	Content Content `json:"content"`
	// The first message whose content is refused; absent: the first of the conversation.
	FromEventID string `json:"fromEventId,omitempty" schema:"id,is=EventID"`
	// The last such message; absent for `schemas` and `tools`.
	ThroughEventID string `json:"throughEventId,omitempty" schema:"id,is=EventID"`
	// The refused tool, or the tool with the refused schema; absent: all tools.
	Tool string `json:"tool,omitempty"`
	// The error of the provider, with secrets removed.
	Error string `json:"error" schema:"max=MaxRefusalBytes"`
}

const TagContentRefused Tag = "ContentRefusedEvent"

func (ContentRefused) Tag() Tag          { return TagContentRefused }
func (b ContentRefused) Request() string { return b.RequestID }

func (b ContentRefused) validate() error {
	if err := known("content", b.Content); err != nil {
		return err
	}
	switch {
	case b.FromEventID != "" && Counter(b.FromEventID) == 0:
		return fieldf("fromEventId", "want the id of an event, like %s, got %s", FormatID("demo", 7), quote(b.FromEventID))
	case b.ThroughEventID != "" && Counter(b.ThroughEventID) == 0:
		return fieldf("throughEventId", "want the id of an event, like %s, got %s", FormatID("demo", 7), quote(b.ThroughEventID))
	case b.Content.OfTools() && b.FromEventID+b.ThroughEventID != "":
		return fieldf("throughEventId", "want none for %s", b.Content)
	case !b.Content.OfTools() && b.Tool != "":
		return fieldf("tool", "want none for %s", b.Content)
	case len(b.Error) > MaxRefusalBytes:
		return fieldf("error", "%d bytes (at most %d)", len(b.Error), MaxRefusalBytes)
	}
	if b.Tool != "" {
		if err := ValidateName("tool", b.Tool); err != nil {
			return err
		}
	}
	return cmp.Or(requestID(b.RequestID), ValidateName("providerId", b.ProviderID), ValidateName("model", b.Model), text("error", b.Error))
}

// String describes the event: "gpt-4o refuses the images of demo:0003 to demo:0007: could not be processed".
func (b ContentRefused) String() string {
	what := map[Content]string{
		ContentImages: "images", ContentPDFs: "PDF files", ContentAudio: "audio files", ContentCalls: "tool calls",
		ContentState: "provider state", ContentSchemas: "schemas of the tools", ContentTools: "tools",
	}[b.Content]
	switch {
	case b.Tool != "" && b.Content == ContentSchemas:
		what = "schema of the tool " + b.Tool
	case b.Tool != "":
		what = "tool " + b.Tool
	case b.ThroughEventID != "" && b.FromEventID == b.ThroughEventID:
		what += " of " + b.ThroughEventID
	case b.FromEventID != "":
		what += fmt.Sprintf(" of %s to %s", b.FromEventID, b.ThroughEventID)
	case b.ThroughEventID != "":
		what += " up to " + b.ThroughEventID
	}
	instead := map[Content]string{
		ContentCalls: "it receives them as text", ContentState: "it is not sent", ContentSchemas: "it receives none",
		ContentTools: "not offered to it",
	}[b.Content]
	return fmt.Sprintf("%s refuses the %s (%s): %s", b.Model, what, cmp.Or(instead, "it receives a note instead"), cmp.Or(b.Error, "no reason given"))
}

func (b ContentRefused) Words() (subject, text string) { return "content refused", b.String() }

func (b ContentRefused) Line() Line {
	return Line{slog.LevelWarn, "provider refuses content; the request is sent without it", []any{
		"content", string(b.Content), "tool", LoggedName(b.Tool), "provider", LoggedName(b.ProviderID), "model", LoggedName(b.Model),
		"from_event", b.FromEventID, "through_event", b.ThroughEventID,
	}}
}

func (ContentRefused) example() Body {
	return ContentRefused{
		RequestID: "demo:r0001", ProviderID: "openai", Model: "gpt-4o-mini", Content: ContentImages, FromEventID: "demo:0001", ThroughEventID: "demo:0001",
		Error: "openai: bad request (400): the image is damaged",
	}
}

// MaxRefusalBytes bounds the error of a [ContentRefused].
const MaxRefusalBytes = 500

// Content is a part of requests that a provider can refuse.
type Content string

// OfTools reports whether the content is that of tools instead of messages.
func (c Content) OfTools() bool { return c == ContentSchemas || c == ContentTools }

// Kinds of content. Models read a note in place of an attachment.
const (
	ContentImages  Content = "images"
	ContentPDFs    Content = "pdfs"
	ContentAudio   Content = "audio"
	ContentCalls   Content = "calls"   // tool calls and results, which are then sent as text
	ContentState   Content = "state"   // [ProviderState], which is then not sent
	ContentSchemas Content = "schemas" // of tools, which then accept any object
	ContentTools   Content = "tools"   // which are then not offered
)

// Values returns all values.
func (Content) Values() []Content {
	return []Content{ContentImages, ContentPDFs, ContentAudio, ContentCalls, ContentState, ContentSchemas, ContentTools}
}
