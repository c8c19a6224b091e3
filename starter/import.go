package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
)

type importOptions struct {
	*app
	name         string
	file         string
	json         bool
	allowMissing bool
}

func newImportCommand(a *app) *cobra.Command {
	o := importOptions{app: a}
	command := &cobra.Command{
		Use:   "import -n NAME FILE|-",
		Short: "Create a context from a log or a conversation",
		Long: `Create a context from a file, or with - from standard input. The input is read
completely before the log is written. It is a log from "starter export", other
lines of events, which may lack ids and times, or messages in the format of the
OpenAI Chat Completions API: {"messages":[{"role":"user","content":"Hello"}]}.

The log is written to the archive, so --blob-url must name the blob store of the
workers, which also receives the attached files. A log with references to bytes
that neither the file nor the blob store has is not imported, unless you add
--allow-missing. The new context waits for its next message.`,
		Example: `  starter import -n demo demo.jsonl
  jq '{messages}' request.json | starter import -n demo -`,
		Args: oneArgument("FILE"),
		RunE: func(command *cobra.Command, args []string) error {
			o.file = args[0]
			return runImport(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.json, "json", false, "print one line of JSON: contextName, events, missing")
	command.Flags().BoolVar(&o.allowMissing, "allow-missing", false, "import references to bytes that the blob store lacks; models receive a note instead")
	return command
}

type imported struct {
	ContextName string `json:"contextName"`
	Events      int    `json:"events"`
	// Missing are the ids of the events whose bytes are missing.
	Missing []string `json:"missing,omitempty"`
}

func runImport(ctx context.Context, o importOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	file, err := o.input()
	if err != nil {
		return err
	}
	defer file.Close()
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	done, err := to.Import(ctx, o.read(file), client.ImportOptions{AllowMissing: o.allowMissing})
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(imported{o.name, done.Events, done.Missing})
	}
	o.note("imported %s into context %s", count(done.Events, "event"), o.name)
	if len(done.Missing) > 0 {
		o.note("the blob store lacks the bytes of %s", strings.Join(done.Missing, ", "))
	}
	return nil
}

func (o importOptions) input() (io.ReadCloser, error) {
	if o.file == "-" {
		return io.NopCloser(o.in), nil
	}
	file, err := os.Open(o.file)
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	return file, nil
}

func (o importOptions) read(r io.Reader) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range o.counted(chat.Read(r, o.name, time.Now())) {
			if err != nil {
				err = fmt.Errorf("read %s: %w", o.file, err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
