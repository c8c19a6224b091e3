package main

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// comparison is what follows the events that two branches share.
type comparison struct {
	After    string         `json:"after"` // the newest event that they share
	Contexts []continuation `json:"contexts"`
}

type continuation struct {
	ContextName string        `json:"contextName"`
	Events      []event.Event `json:"events"` // messages, tool calls, and changes of the model or the system prompt
}

func (c continuation) text() string {
	var notes []string
	for _, e := range c.Events {
		notes = append(notes, show.Note(e.Body))
	}
	return strings.Join(notes, "\n\n")
}

const defaultWidth = 80 // of output that is no terminal

func runCompare(ctx context.Context, o branchesOptions) error {
	var logs [2][]event.Event
	for i, name := range []string{o.name, o.compare} {
		c, err := o.open(ctx, name)
		if err == nil {
			logs[i], err = readLog(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	shared := 0
	for shared < min(len(logs[0]), len(logs[1])) && reflect.DeepEqual(logs[0][shared], logs[1][shared].MovedTo(o.name)) {
		shared++
	}
	if shared == 0 {
		return fmt.Errorf("compare contexts %s and %s: they share no event (list branches with \"%s branches -n %s\")",
			o.name, o.compare, o.program(), o.name)
	}
	found := comparison{After: logs[0][shared-1].ID}
	for i, name := range []string{o.name, o.compare} {
		found.Contexts = append(found.Contexts, continuationOf(name, logs[i][shared:]))
	}
	if o.json {
		return o.printJSON(found)
	}
	width := cmp.Or(o.width, defaultWidth)
	_, err := fmt.Fprintf(terminal.Raw(o.out), "after %s\n%s%s", terminal.Line(found.After),
		show.Columns(width, o.name, o.compare), show.Columns(width, found.Contexts[0].text(), found.Contexts[1].text()))
	return err
}

func continuationOf(name string, log []event.Event) continuation {
	c := continuation{ContextName: name, Events: []event.Event{}}
	for _, e := range log {
		switch body := e.Body.(type) {
		case event.AssistantMessage:
			if body.Content != "" {
				c.Events = append(c.Events, e)
			}
		case event.UserMessage, event.ToolCall, event.SetProviderConfig, event.SystemPrompt:
			c.Events = append(c.Events, e)
		}
	}
	return c
}
