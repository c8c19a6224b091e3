package chat

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

type Format string

const (
	// JSONL is one event per line, as stored in the log.
	JSONL Format = "jsonl"
	// OpenAI is {"messages":[…]} as accepted by the Chat Completions API.
	OpenAI Format = "openai"
	// Markdown is a human-readable transcript.
	Markdown Format = "markdown"
)

func Formats() []Format { return []Format{JSONL, OpenAI, Markdown} }

// Blobs returns the bytes of a reference ([event.Event.BlobRef]). Nil bytes leave the reference in the output.
type Blobs func(ref string) ([]byte, error)

// Write writes a log with the bytes that it refers to, one reference at a time; nil blobs write only references. left
// is the number of references without their bytes in the output. Write stops at the first error of the log or of
// blobs and returns it; it may have written part of the output.
func Write(w io.Writer, format Format, log iter.Seq2[event.Event, error], blobs Blobs) (left int, err error) {
	read := func(ref string) (data []byte, err error) {
		if blobs != nil {
			data, err = blobs(ref)
		}
		if data == nil {
			left++
		}
		return data, err
	}
	out := bufio.NewWriter(w)
	switch format {
	case JSONL:
		var unfit int
		unfit, err = writeEvents(out, log, read)
		left += unfit
	case OpenAI:
		err = writeOpenAI(out, log, read)
	case Markdown:
		err = writeMarkdown(out, log, read)
	default:
		err = fmt.Errorf("unknown format %q (want one of %q)", format, Formats())
	}
	if err != nil {
		return left, err
	}
	return left, out.Flush()
}

// writeEvents returns the number of references whose bytes their events cannot contain ([event.Event.WithBlob]).
func writeEvents(w *bufio.Writer, log iter.Seq2[event.Event, error], blobs Blobs) (unfit int, err error) {
	for e, err := range log {
		if err != nil {
			return unfit, err
		}
		if ref := e.BlobRef(); ref != "" {
			data, err := blobs(ref)
			if err != nil {
				return unfit, fmt.Errorf("event %s: %w", e.ID, err)
			}
			with, ok := e.WithBlob(data)
			if data != nil && !ok {
				unfit++
			}
			e = with
		}
		line, err := e.MarshalJSON()
		if err != nil {
			return unfit, err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return unfit, err
		}
	}
	return unfit, nil
}

type conversation struct {
	contextName string
	messages    []reducer.Message
	// reasoning is by event id. Messages do not include it, because models never receive it.
	reasoning map[string]string
}

func conversationOf(log iter.Seq2[event.Event, error]) (conversation, error) {
	c := conversation{reasoning: map[string]string{}}
	var events []event.Event
	for e, err := range log {
		if err != nil {
			return conversation{}, err
		}
		if e.Tag() != event.TagCompacted { // an export contains the whole conversation
			events = append(events, e)
		}
		if answer, ok := e.Body.(event.AssistantMessage); ok && answer.Reasoning != "" {
			c.reasoning[e.ID] = answer.Reasoning
		}
	}
	if len(events) > 0 {
		c.contextName = events[0].ContextName
	}
	c.messages = reducer.Reduce(reducer.Initial(), events...).Messages
	return c, nil
}

// resolved returns the attachments of a message with the bytes that they refer to.
func resolved(m reducer.Message, blobs Blobs) ([]reducer.Attachment, error) {
	attachments := slices.Clone(m.Attachments)
	for i, a := range attachments {
		if !a.Source.IsRef() {
			continue
		}
		data, err := blobs(a.Source.Ref)
		if err != nil {
			return nil, fmt.Errorf("attachment of event %s: %w", m.EventID, err)
		}
		if data != nil {
			attachments[i].Source = event.Source{Type: event.SourceBlob, Data: data}
		}
	}
	return attachments, nil
}

// nameOf omits a file name that the source shows.
func nameOf(a reducer.Attachment) string {
	source := a.Source.String()
	if a.FileName == "" || a.FileName == source || strings.HasSuffix(source, "/"+a.FileName) {
		return source
	}
	return a.FileName + " (" + source + ")"
}
