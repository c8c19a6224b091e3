package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/chat"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type chatOptions struct {
	*app
	name string
}

func newChatCommand(a *app) *cobra.Command {
	o := chatOptions{app: a}
	command := &cobra.Command{
		Use:   "chat [-n NAME]",
		Short: "Chat with a context, in a terminal or in a pipe",
		Long: `Chat with a context. On a terminal, the answer appears as it is generated, and
the arrow keys up and down show earlier lines. For the delivery policy, see
"starter set policy".

If standard input or output is not a terminal, each line of input is one
message, and its turn completes before the next line is read. If standard output
is not a terminal, each answer appears when it is complete.

Lines that begin with a slash and a word are commands:

` + chat.Help,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return runChat(command.Context(), o) },
	}
	nameFlag(command, &o.name, "chat", "`NAME` of the context"+nameRule)
	return command
}

func runChat(ctx context.Context, o chatOptions) error {
	with, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if o.outTerminal {
		o.noteNotLive()
	}
	if !o.inTerminal || !o.outTerminal {
		return o.pipe(ctx, with)
	}
	past, err := pastOf(ctx, with)
	if err != nil {
		return err
	}
	return chat.Run(ctx, o.in, terminal.Raw(o.out), chat.Config{
		Context: with, Past: past, Style: show.Style{Color: o.color}, Width: o.width, Height: o.height, Attach: attach,
		TaskQueue: o.taskQueue(), User: os.Getenv("USER"), Program: o.program(), EndsAll: os.Getenv(variableEndsAll) != "",
		Switch: func(ctx context.Context, command chat.Command) (chat.Context, []event.Event, error) {
			return o.switchTo(ctx, command)
		},
		Contexts: func(ctx context.Context) (string, error) {
			var table strings.Builder
			err := o.contexts(ctx, &table)
			return strings.TrimRight(table.String(), "\n"), err
		},
	})
}

// variableEndsAll is set if all programs end with this command, as under "worker --dev --
// COMMAND".
const variableEndsAll = "CHRONICLE_ENDS_WITH_COMMAND"

// switchTo opens the context of a command /switch, which exists, or /new, which does not.
func (o chatOptions) switchTo(ctx context.Context, command chat.Command) (conversation, []event.Event, error) {
	name, isNew := command.Argument, command.Name == "new"
	if name == "" && isNew {
		name = "chat-" + time.Now().Format("20060102-150405")
	}
	if name == "" {
		return nil, nil, errors.New("NAME: missing (/contexts lists the contexts)")
	}
	if err := event.ValidateContextName(name); err != nil {
		return nil, nil, err
	}
	to, err := o.client.Open(name)
	if err != nil {
		return nil, nil, err
	}
	past, err := pastOf(ctx, to)
	switch {
	case err != nil:
		return nil, nil, err
	case isNew && len(past) > 0:
		return nil, nil, fmt.Errorf("context %s exists (use /switch %[1]s, or another name)", name)
	case !isNew && len(past) == 0:
		return nil, nil, fmt.Errorf("no context %s (use /new %[1]s; /contexts lists the contexts)", name)
	}
	return to, past, nil
}

const maxContexts = 20

// contexts prints the first contexts of the list.
func (o chatOptions) contexts(ctx context.Context, w io.Writer) error {
	contexts, err := activeContexts(ctx, o.client, "", false)
	if err != nil {
		return err
	}
	if len(contexts) == 0 {
		_, err := fmt.Fprintln(w, "no contexts")
		return err
	}
	if len(contexts) > maxContexts {
		defer fmt.Fprintf(w, "… %q lists all\n", o.program()+" list")
		contexts = contexts[:maxContexts]
	}
	return printContexts(w, contexts)
}

// pastOf returns no events if the context does not exist.
func pastOf(ctx context.Context, with conversation) ([]event.Event, error) {
	var past []event.Event
	for e, err := range with.Events(ctx, "") {
		if errors.Is(err, client.ErrNoContext) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		past = append(past, e)
	}
	return past, nil
}

func (o chatOptions) pipe(ctx context.Context, with conversation) error {
	var attachments []event.Event
	var unanswered error
	failures := 0
	fail := func(err error) {
		failures++
		unanswered = err
		fmt.Fprintf(o.err, "starter: %s\n", err.Error())
	}
	for line := range readLines(ctx, o.in) {
		if line.err != nil {
			return fmt.Errorf("standard input: %w", line.err)
		}
		command, text, isCommand := chat.ParseLine(string(line.text))
		if isCommand {
			var attached []event.Event
			var err error
			switch command.Name {
			case "quit":
				return o.failed(ctx, failures, unanswered)
			case "new", "switch":
				var to conversation
				if to, _, err = o.switchTo(ctx, command); err == nil {
					with = to
				}
			case "contexts":
				err = o.contexts(ctx, o.out)
			default:
				attached, err = o.runCommand(ctx, with, command)
				attachments = append(attachments, attached...)
			}
			if err != nil {
				// %v hides the usage error, so that an invalid line does not cause exit code 2.
				fail(fmt.Errorf("/%s: %v", command.Name, err))
			}
			continue
		}
		if text == "" && len(attachments) == 0 {
			continue
		}
		message, err := input(event.UserMessage{Content: text})
		if err == nil {
			err = o.ask(ctx, with, append(attachments, message))
			attachments = nil
		}
		if ctx.Err() != nil || exitCode(err) == exit.Unreachable {
			return err
		}
		if err != nil {
			fail(err)
		}
	}
	return o.failed(ctx, failures, unanswered)
}

func (o chatOptions) failed(ctx context.Context, failures int, unanswered error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failures > 0 {
		return failedLinesError{failures, unanswered}
	}
	return nil
}

// failedLinesError reports how many lines failed. Their errors are already printed; the last
// one determines the exit code.
type failedLinesError struct {
	lines int
	last  error
}

func (e failedLinesError) Error() string { return count(e.lines, "line") + " failed" }
func (e failedLinesError) Unwrap() error { return e.last }

func count(n int, thing string) string { return show.Count(n, thing, thing+"s") }

func (o chatOptions) runCommand(ctx context.Context, with conversation, command chat.Command) (attached []event.Event, err error) {
	switch command.Name {
	case "help":
		_, err = fmt.Fprintln(o.out, chat.Help)
		return nil, err
	case "system":
		_, err := o.set(ctx, with, event.New(event.SystemPrompt{Content: command.Argument}))
		return nil, err
	case "state":
		state, err := with.State(ctx)
		if err != nil {
			return nil, err
		}
		return nil, show.State(o.out, state)
	case "answer", "deny":
		return nil, errors.New("only on a terminal (use \"starter approve\", \"starter deny\" or \"starter result\")")
	case "events":
		return nil, eventsOptions{app: o.app}.print(with.Events(ctx, ""))
	case "attach":
		return attachAll([]string{command.Argument})
	default:
		return nil, errors.New("unknown command " + chat.UnknownAdvice) // the caller adds the name
	}
}
