package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/exchange"
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
		Short: "Make a context of a log, or of a conversation",
		Long: `Make a context of a file, or of standard input, which is read to its end before
anything is written. It is a log of "starter export", lines of events with less
in them, or messages as the Chat Completions API of OpenAI takes them:
{"messages":[{"role":"user","content":"Hello"}]}.

The log goes to the archive of the workers, so the store must be named as they
have it. Then a session begins, which waits for the next message.

` + exitReference,
		Example: `  starter import -n demo demo.jsonl
  jq '{messages}' request.json | starter import -n demo -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			o.file = args[0]
			return runImport(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.json, "json", false, "print one JSON object on one line: contextName, events")
	return command
}

// imported is what an import prints.
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
	o.note("imported %d events as context %s", len(events), o.name)
	return nil
}

// read reads the whole log from the file, or from standard input.
func (o importOptions) read() ([]event.Event, error) {
	var r io.Reader = o.in
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, usageError{err}
		}
		defer file.Close()
		r = file
	}
	var events []event.Event
	for e, err := range o.counted(exchange.Read(r, o.name, time.Now())) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o.file, err)
		}
		events = append(events, e)
	}
	return events, nil
}
