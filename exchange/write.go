package exchange

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Format is how a log is written.
type Format string

// The formats.
const (
	// JSONL is one event per line, as it stands in the log.
	JSONL Format = "jsonl"
	// OpenAI is {"messages":[…]}, as the Chat Completions API takes it.
	OpenAI Format = "openai"
	// Markdown is a transcript for people.
	Markdown Format = "markdown"
)

// Formats lists the formats.
func Formats() []Format { return []Format{JSONL, OpenAI, Markdown} }

// Write writes a log in a format. The log ends with its first error, which is
// returned; something may have been written by then.
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
		err = fmt.Errorf("format %q: want one of %q", format, Formats())
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

// conversationOf is the name of a log and what its events amount to.
func conversationOf(log iter.Seq2[event.Event, error]) (contextName string, messages []reducer.Message, err error) {
	var events []event.Event
	for e, err := range log {
		if err != nil {
			return "", nil, err
		}
		events = append(events, e)
	}
	if len(events) > 0 {
		contextName = events[0].ContextName
	}
	return contextName, reducer.Reduce(reducer.Initial(), events...).Messages, nil
}

// nameOf names an attachment, and says where it is unless that is its name.
func nameOf(a reducer.Attachment) string {
	source := a.Source.String()
	if a.FileName == "" || a.FileName == source || strings.HasSuffix(source, "/"+a.FileName) {
		return source
	}
	return a.FileName + " (" + source + ")"
}
