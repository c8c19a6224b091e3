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
	conversation string // of an export of ChatGPT, by title or id
	all          bool   // of an export of ChatGPT
	json         bool
	allowMissing bool
}

func newImportCommand(a *app) *cobra.Command {
	o := importOptions{app: a}
	command := &cobra.Command{
		Use:   "import -n NAME [FILE|-]",
		Short: "Create contexts from a log, a conversation or an export of ChatGPT",
		Long: `Create a context from a file, or from standard input: with -, or without FILE if
it is not a terminal. The input is read completely before the log is written. It is
a log from "starter export", other lines of events, which may lack ids and times, or
messages in the format of the OpenAI Chat Completions API:
{"messages":[{"role":"user","content":"Hello"}]}.

With --conversation or --all, it is conversations.json of an export of ChatGPT. The
current branch of a conversation is imported, with text in place of images, audio
and other content that the file lacks. Without -n, the context is named after the
title and the id. --all skips contexts that exist.

The log is written to the archive, so --blob-url must name the blob store of the
workers, which also receives the attached files. A log with references to bytes
that the file lacks is not imported, unless you add --allow-missing. The new
context waits for its next message.`,
		Example: `  starter import -n demo demo.jsonl
  jq '{messages}' request.json | starter import -n demo
  starter import conversations.json --conversation "Trip to Paris"`,
		Args: atMostOneArgument,
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				o.file = args[0]
			case o.inTerminal:
				return usagef("FILE: missing (standard input is a terminal)")
			default:
				o.file = "-"
			}
			if o.all || o.conversation != "" {
				return runImportConversations(command.Context(), o)
			}
			return runImport(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", "`NAME` of the context"+nameRule+"; required without --conversation or --all")
	command.Flags().StringVar(&o.conversation, "conversation", "", "import the conversation of an export of ChatGPT with this `TITLE` or id")
	command.Flags().BoolVar(&o.all, "all", false, "import all conversations of an export of ChatGPT")
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
	return o.importLog(ctx, to, o.read(file))
}

func (o importOptions) importLog(ctx context.Context, to conversation, log iter.Seq2[event.Event, error]) error {
	done, err := to.Import(ctx, log, client.ImportOptions{AllowMissing: o.allowMissing})
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(imported{to.Name(), done.Events, done.Missing})
	}
	o.note("imported %s into context %s", count(done.Events, "event"), to.Name())
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
