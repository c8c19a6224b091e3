package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/index"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type searchOptions struct {
	*app
	name, label, dir string
	limit            int
	json             bool
}

func newSearchCommand(a *app) *cobra.Command {
	o := searchOptions{app: a}
	command := &cobra.Command{
		Use:   "search TEXT... [-n NAME] [--label NAME=VALUE] [flags]",
		Short: "Search the messages of all contexts",
		Long: `Search the messages of users and models for words, and phrases in quotes: the most
relevant ones first, then the newest. A message matches if it has all words. The last
word may be the beginning of a longer one.

The command reads the logs of all contexts, or that of one. With
--index-dir, it keeps an index and reads only what is new. The index contains the
messages: what is deleted leaves it when the command runs again.`,
		Example: `  starter search canary
  starter search 'color "blue whale"' -n demo --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("TEXT: missing")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return runSearch(command.Context(), o, strings.Join(args, " "))
		},
	}
	nameFlag(command, &o.name, "", "`NAME` of a context"+nameRule+" (default: all contexts)")
	flags := command.Flags()
	flags.StringVar(&o.label, "label", "", "search contexts with a label, `NAME=VALUE`")
	flags.StringVar(&o.dir, "index-dir", "", "`DIRECTORY` of an index to keep (default: none)")
	flags.IntVar(&o.limit, "limit", 20, fmt.Sprintf("maximum `NUMBER` of messages, at most %d", index.MaxHits))
	flags.BoolVar(&o.json, "json", false, "print one JSON object per line")
	return command
}

func runSearch(ctx context.Context, o searchOptions, text string) error {
	switch {
	case o.limit < 1 || o.limit > index.MaxHits:
		return usagef("--limit %d: out of range (1 to %d)", o.limit, index.MaxHits)
	case o.label != "" && !strings.Contains(o.label, "="):
		return usagef("--label %q: want NAME=VALUE", o.label)
	case o.name != "" && o.dir != "":
		return usagef("--index-dir: cannot be used with --name")
	case o.name != "":
		if err := checkName(o.name); err != nil {
			return err
		}
	}
	if err := index.CheckQuery(text); err != nil {
		return usagef("TEXT: %v", err)
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	source, err := o.source(ctx, c)
	if err != nil {
		return err
	}
	warnings := slog.New(slog.NewTextHandler(o.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	x, err := index.Open(source, index.Options{Dir: o.dir, Log: warnings})
	if err != nil {
		return err
	}
	defer x.Close()
	unread, err := x.CatchUp(ctx)
	if err != nil {
		return err
	}
	hits, more, err := x.Search(ctx, index.Query{Text: text, ContextName: o.name, Label: o.label, Limit: o.limit})
	if err != nil {
		return err
	}
	if err := o.print(hits, more); err != nil {
		return err
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		problems = append(problems, fmt.Errorf("search context %s: %w", name, unread[name]))
	}
	return errors.Join(problems...)
}

// listed is a source whose list was read before, so that its errors end the command.
type listed struct {
	contextClient
	list  []client.Summary
	isOne bool // context that was named, instead of all
}

func (s listed) List(context.Context, string) iter.Seq2[client.Summary, error] {
	return func(yield func(client.Summary, error) bool) {
		for _, summary := range s.list {
			if !yield(summary, nil) {
				return
			}
		}
	}
}

func (s listed) Stored(ctx context.Context) iter.Seq2[string, error] {
	if s.isOne {
		return func(func(string, error) bool) {}
	}
	return s.contextClient.Stored(ctx)
}

// Watch is not needed: the command ends.
func (listed) Watch(context.Context, func(string)) error { return nil }

func (o searchOptions) source(ctx context.Context, c contextClient) (listed, error) {
	s := listed{contextClient: c}
	if o.name != "" {
		summary, err := c.Summary(ctx, o.name)
		if errors.Is(err, client.ErrNoContext) { // perhaps only the blob store has it
			summary.ContextName = o.name
			for _, err = range c.Events(ctx, o.name, "") {
				break
			}
		}
		s.list, s.isOne = []client.Summary{summary}, true
		return s, err
	}
	for summary, err := range c.List(ctx, "") {
		if err != nil {
			return s, err
		}
		s.list = append(s.list, summary)
	}
	return s, nil
}

func (o searchOptions) print(hits []index.Hit, more bool) error {
	if o.json {
		for _, hit := range hits {
			if err := o.printJSON(hit); err != nil {
				return err
			}
		}
		return nil
	}
	if len(hits) == 0 {
		o.note("no messages")
		return nil
	}
	style := show.Style{Color: o.color && o.outTerminal}
	out := terminal.Raw(o.out)
	for _, hit := range hits {
		head := strings.Join([]string{hit.EventID, hit.Role, hit.Timestamp.Local().Format(time.DateTime), hit.Title}, "  ")
		if tenant, _, ok := strings.Cut(hit.ContextName, "/"); ok {
			head = tenant + "/" + head
		}
		var text strings.Builder
		for _, f := range hit.Fragments {
			piece := terminal.Clean(f.Text)
			if f.Match {
				piece = style.Bold(piece)
			}
			text.WriteString(piece)
		}
		if _, err := fmt.Fprintf(out, "%s\n    %s\n", strings.TrimRight(terminal.Line(head), " "), text.String()); err != nil {
			return err
		}
	}
	if more {
		o.note("there are more; see --limit")
	}
	return nil
}
