package chat

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Format is an output format for logs.
type Format string

// Supported formats.
const (
	// JSONL is one event per line, as stored in the log.
	JSONL Format = "jsonl"
	// OpenAI is {"messages":[…]} as accepted by the Chat Completions API.
	OpenAI Format = "openai"
	// Markdown is a human-readable transcript.
	Markdown Format = "markdown"
)

// Formats returns all formats.
func Formats() []Format { return []Format{JSONL, OpenAI, Markdown} }

// Write writes a log in the given format. It stops at the log's first error and
// returns it; part of the output may have been written.
func Write(w io.Writer, format Format, log iter.Seq2[event.Event, error]) error {
	out := bufio.NewWriter(w)
	var err error
	switch format {
	case JSONL:
		err = writeEvents(out, log)
	case OpenAI:
		err = writeOpenAI(out, log)
	case Markdown:
		err = writeMarkdown(out, log)
	default:
		err = fmt.Errorf("unknown format %q (want one of %q)", format, Formats())
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

func writeEvents(w *bufio.Writer, log iter.Seq2[event.Event, error]) error {
	for e, err := range log {
		if err != nil {
			return err
		}
		line, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// conversation is what a log contains.
type conversation struct {
	contextName string
	messages    []reducer.Message
	// reasoning is that of the answers, by event id. Messages do not include it, because
	// models never receive it.
	reasoning map[string]string
}

func conversationOf(log iter.Seq2[event.Event, error]) (conversation, error) {
	c := conversation{reasoning: map[string]string{}}
	var events []event.Event
	for e, err := range log {
		if err != nil {
			return conversation{}, err
		}
		events = append(events, e)
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

// nameOf returns the file name of an attachment and its source, unless the source
// already shows the name.
func nameOf(a reducer.Attachment) string {
	source := a.Source.String()
	if a.FileName == "" || a.FileName == source || strings.HasSuffix(source, "/"+a.FileName) {
		return source
	}
	return a.FileName + " (" + source + ")"
}
