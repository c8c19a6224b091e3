package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/starter/chat"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
	"github.com/seed-9ed7edd4/chronicle/terminal"
)

type chatOptions struct {
	*app
	name string
}

func newChatCommand(a *app) *cobra.Command {
	o := chatOptions{app: a}
	command := &cobra.Command{
		Use:   "chat [-n NAME]",
		Short: "Talk with a context, in a terminal or in a pipe",
		Long: `Talk with a context. On a terminal the answer appears as it comes; a new line
while it does is sent at once, and the policy of the context decides what that
does to the answer, see "starter set policy". Ctrl-C interrupts a running
answer, Ctrl-D leaves, up and down bring back earlier lines.

When standard input or output is not a terminal, each line of input is a
message, whose turn is waited for.

Lines that begin with a slash and a word are commands:

` + chat.Help + "\n\n" + exitReference,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runChat(command.Context(), o) },
	}
	nameFlag(command, &o.name, "chat", "`NAME` of the context, 1-128 of A-Z a-z 0-9 . _ -, first a letter or digit")
	return command
}

func runChat(ctx context.Context, o chatOptions) error {
	c, with, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	o.noteNotLive(c)
	if !o.inTerminal || !o.outTerminal {
		return o.pipe(ctx, with)
	}
	past, err := pastOf(ctx, with)
	if err != nil {
		return err
	}
	return chat.Run(ctx, o.in, terminal.Raw(o.out), chat.Config{
		Context: with, Past: past, Style: show.Style{Color: o.color}, Width: o.width, Attach: attach,
		TaskQueue: o.taskQueue(), Farewell: o.farewell(),
	})
}

// variableEndsAll is set when everything ends with this command, as below
// "worker --dev -- COMMAND".
const variableEndsAll = "CHRONICLE_ENDS_WITH_COMMAND"

// farewell is what becomes of the answer when the chat is left.
func (o chatOptions) farewell() string {
	if os.Getenv(variableEndsAll) != "" {
		return "The worker ends with this chat. The answer goes on when it is started again."
	}
	return fmt.Sprintf("The answer goes on without you. Come back with: %s chat -n %s", o.program(), o.name)
}

// pastOf is the log so far; empty when there is none yet.
func pastOf(ctx context.Context, with conversation) ([]event.Event, error) {
	var past []event.Event
	for e, err := range with.Events(ctx, "") {
		if errors.Is(err, session.ErrNoContext) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		past = append(past, e)
	}
	return past, nil
}

// pipe takes each line for a message and waits for its turn.
func (o chatOptions) pipe(ctx context.Context, with conversation) error {
	var attachments []event.Event
	var unanswered error
	messages, failures := 0, 0
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
			if command.Name == "quit" {
				break
			}
			attached, err := o.runCommand(ctx, with, command)
			attachments = append(attachments, attached...)
			if err != nil {
				// A bad line is no bad usage of the whole command.
				fail(fmt.Errorf("/%s: %v", command.Name, err))
			}
			continue
		}
		if text == "" && len(attachments) == 0 {
			continue
		}
		message, err := input(event.UserMessage{Content: text})
		if err == nil {
			messages++
			err = o.ask(ctx, with, append(attachments, message))
			attachments = nil
		}
		if ctx.Err() != nil || exitCode(err) == exitUnreachable {
			return err
		}
		if err != nil {
			fail(err)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failures > 0 {
		return fmt.Errorf("%s with %s, the last one: %w", count(failures, "failure"), count(messages, "message"), unanswered)
	}
	return nil
}

// count is a number of things, in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// runCommand does in a pipe what the screen does on a terminal.
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
	case "events":
		return nil, eventsOptions{app: o.app}.print(with.Events(ctx, ""))
	case "attach":
		return attachAll([]string{command.Argument})
	default:
		return nil, chat.UnknownCommand(command.Name)
	}
}
