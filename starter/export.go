package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/exchange"
	"github.com/seed-9ed7edd4/chronicle/terminal"
)

type exportOptions struct {
	*app
	name   string
	format string
	file   string
}

func newExportCommand(a *app) *cobra.Command {
	o := exportOptions{app: a}
	command := &cobra.Command{
		Use:   "export -n NAME [flags]",
		Short: "Write the log of a context for other programs, or for people",
		Long: `Write the log of a context to standard output or to a file. No worker is needed
for it.

jsonl     every event as it stands in the log; "starter import" reads it
openai    the messages, as the Chat Completions API of OpenAI takes them
markdown  the conversation, for people

` + exitReference,
		Example: `  starter export -n demo -o demo.jsonl
  starter export -n demo --format openai | jq .messages`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runExport(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.format, "format", string(exchange.JSONL), "`FORMAT` to write: jsonl, openai or markdown")
	flags.StringVarP(&o.file, "output", "o", "", "`FILE` to write, which is replaced when all is written (default: standard output)")
	return command
}

func runExport(ctx context.Context, o exportOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	format := exchange.Format(o.format)
	if !slices.Contains(exchange.Formats(), format) {
		return usagef("--format %q: want jsonl, openai or markdown", o.format)
	}
	c, from, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	log := from.Events(ctx, "")
	if o.file == "" {
		if !o.outTerminal {
			log = o.counted(log)
		}
		return write(o.out, format, log)
	}
	return replace(o.file, func(w io.Writer) error { return write(w, format, o.counted(log)) })
}

// write writes a log that a terminal can show.
func write(w io.Writer, format exchange.Format, log iter.Seq2[event.Event, error]) error {
	if format == exchange.Markdown {
		return exchange.Write(terminal.NewWriter(w), format, log)
	}
	return exchange.Write(terminal.NewJSONWriter(w), format, log)
}

// replace writes a file that takes the place of another one as a whole, or not
// at all.
func replace(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // nothing is there when all went well
	err = write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// countedEvents is after how many events a person is told how many there were.
const countedEvents = 1000

// counted tells a person at a terminal how much of a long log was read. The
// line is gone when the log ends.
func (s streams) counted(log iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	if !s.errTerminal {
		return log
	}
	return func(yield func(event.Event, error) bool) {
		count := 0
		defer func() {
			if count >= countedEvents {
				fmt.Fprint(terminal.Raw(s.err), "\r\x1b[K")
			}
		}()
		for e, err := range log {
			if !yield(e, err) {
				return
			}
			if count++; count%countedEvents == 0 {
				fmt.Fprintf(terminal.Raw(s.err), "\r%d events", count)
			}
		}
	}
}
