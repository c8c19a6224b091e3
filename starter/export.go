package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/chat"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

type exportOptions struct {
	*app
	name   string
	format string
	file   string
	// noAttachments leaves references in the output.
	noAttachments bool
}

func newExportCommand(a *app) *cobra.Command {
	o := exportOptions{app: a}
	command := &cobra.Command{
		Use:   "export -n NAME [flags]",
		Short: "Export the log of a context as JSONL, OpenAI messages or Markdown",
		Long: `Export the log of a context to standard output or to a file. No worker is needed.

  jsonl     all events of the log; "starter import" reads them
  openai    the messages, in the format of the OpenAI Chat Completions API
  markdown  the conversation, for readers

The output contains the attached files and, in JSONL, the tool results that the
blob store keeps. Files by URL, or on the disk of a worker, remain references. If
bytes are missing in the blob store, or the event has metadata named blobRef or
blob, the export is completed with references to them, and the command fails.`,
		Example: `  starter export -n demo -o demo.jsonl
  starter export -n demo --format openai | jq .messages`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runExport(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.format, "format", string(chat.JSONL), "output `FORMAT`: jsonl, openai or markdown")
	flags.BoolVar(&o.noAttachments, "no-attachments", false, "write references to the blob store instead of the bytes that it keeps")
	flags.StringVarP(&o.file, "output", "o", "", "output `FILE`, replaced only after a complete export (default: standard output)")
	return command
}

func runExport(ctx context.Context, o exportOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	format := chat.Format(o.format)
	if !slices.Contains(chat.Formats(), format) {
		return usagef("--format %q: want jsonl, openai or markdown", o.format)
	}
	if err := checkOutput(o.file); err != nil {
		return err
	}
	from, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	log := o.readLog(ctx, from, "")
	var bytes chat.Blobs
	if !o.noAttachments {
		bytes = func(ref string) ([]byte, error) { return bytesOf(ctx, from, ref) }
	}
	var left int
	if o.file == "" {
		if !o.outTerminal {
			log = o.counted(log)
		}
		left, err = write(o.out, format, log, bytes)
	} else {
		err = replace(o.file, func(w io.Writer) (err error) {
			left, err = write(w, format, o.counted(log), bytes)
			return err
		})
	}
	switch {
	case err != nil || left == 0:
		return err
	case o.noAttachments:
		o.note("left out the bytes of %s", count(left, "reference"))
		return nil
	}
	return fmt.Errorf("export context %s: the output lacks the bytes of %s (\"starter verify -n %s\" lists the events whose bytes are missing in the blob store)",
		o.name, count(left, "reference"), o.name)
}

// bytesOf returns nil for bytes that the blob store lacks.
func bytesOf(ctx context.Context, from conversation, ref string) ([]byte, error) {
	data, err := from.Blob(ctx, ref)
	switch {
	case errors.Is(err, blobs.ErrNotFound), errors.Is(err, blobs.ErrCorrupt):
		return nil, nil
	case errors.Is(err, client.ErrNoArchive):
		return nil, fmt.Errorf("%w; or add --no-attachments", err)
	}
	return data, err
}

// checkOutput accepts "", which is standard output.
func checkOutput(name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return usagef("--output %s: is %s (want a file)", name, kindOf(info.Mode()))
	}
	folder := filepath.Dir(name)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() || strings.HasSuffix(name, "/") {
		return usagef("--output %s: %s is not an existing directory (create it, or name another FILE)", name, folder)
	}
	return nil
}

func write(w io.Writer, format chat.Format, log iter.Seq2[event.Event, error], blobs chat.Blobs) (left int, err error) {
	if format == chat.Markdown {
		return chat.Write(terminal.NewWriter(w), format, log, blobs)
	}
	return chat.Write(terminal.NewJSONWriter(w), format, log, blobs)
}

// The old content remains unless write succeeds.
func replace(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // no longer exists on success
	err = write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

const countedEvents = 1000

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
