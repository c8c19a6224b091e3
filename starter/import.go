package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/formats/chat"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

type importOptions struct {
	*app
	name string
	file string
	json bool
}

func newImportCommand(a *app) *cobra.Command {
	o := importOptions{app: a}
	command := &cobra.Command{
		Use:   "import -n NAME FILE|-",
		Short: "Create a context from a log or a conversation",
		Long: `Create a context from a file, or with - from standard input. The input is read
completely before anything is written. It is a log from "starter export", other
lines of events, which may lack ids and times, or messages in the format of the
OpenAI Chat Completions API: {"messages":[{"role":"user","content":"Hello"}]}.

The log is written to the archive, so --blob-url must name the blob store of the
workers. The new context waits for its next message.

` + exitReference,
		Example: `  starter import -n demo demo.jsonl
  jq '{messages}' request.json | starter import -n demo -`,
		Args: oneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			o.file = args[0]
			return runImport(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.json, "json", false, "print one line of JSON: contextName, events")
	return command
}

type imported struct {
	ContextName string `json:"contextName"`
	Events      int    `json:"events"`
}

func runImport(ctx context.Context, o importOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	events, err := o.read()
	if err != nil {
		return err
	}
	c, to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	if err := to.Import(ctx, events); err != nil {
		return err
	}
	if o.json {
		return o.printJSON(imported{o.name, len(events)})
	}
	o.note("imported %s into context %s", count(len(events), "event"), o.name)
	return nil
}

func (o importOptions) read() ([]event.Event, error) {
	var r io.Reader = o.in
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, exit.UsageError{Err: err}
		}
		defer file.Close()
		r = file
	}
	var events []event.Event
	for e, err := range o.counted(chat.Read(r, o.name, time.Now())) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o.file, err)
		}
		events = append(events, e)
	}
	return events, nil
}
