package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/starter/chat"
)

type sendOptions struct {
	*app
	name        string
	message     string
	hasMessage  bool
	attachments []string
	settings    string
	hasSettings bool
	noWait      bool
	json        bool
	deltas      bool
}

func newSendCommand(a *app) *cobra.Command {
	o := sendOptions{app: a}
	command := &cobra.Command{
		Use:   "send -n NAME [-m TEXT] [flags]",
		Short: "Send a message and show the answer",
		Long: `Send a message to a context and show the answer: on a terminal as it is
generated, otherwise when it is complete. The context is created if it does not
exist. Without -m the message is read from standard input.

The delivery policy of the context decides what happens to a running answer, see
"starter set policy". Ctrl-C stops the wait, not the answer.`,
		Example: `  starter send -n demo -m "What is in this picture?" --attach cat.png
  git diff | starter send -n review
  starter send -n demo -m "Hello" --json --deltas | jq .`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			o.hasMessage, o.hasSettings = command.Flags().Changed("message"), command.Flags().Changed("settings")
			return runSend(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVarP(&o.message, "message", "m", "",
		"`TEXT` of the message, at most 16 MB of JSON (60 KiB without a blob store); - or no flag: read standard input")
	flags.StringArrayVar(&o.attachments, "attach", nil, attachUsage)
	flags.StringVar(&o.settings, "settings", "",
		"request settings for this message only, as `JSON` with the fields of a SetRequestSettingsEvent; overrides \"set request\"")
	flags.BoolVar(&o.noWait, "no-wait", false, "return as soon as the message is stored in Temporal")
	flags.Bool(flagTrace, false, "print the id of the OpenTelemetry trace, even if this command does not export it")
	flags.BoolVar(&o.json, "json", false, "print the events of the turn, one JSON object per line")
	flags.BoolVar(&o.deltas, "deltas", false, "also print live deltas, as TextDeltaEvent and ReasoningDeltaEvent; requires --json")
	return command
}

func runSend(ctx context.Context, o sendOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	switch {
	case o.deltas && !o.json:
		return usagef("--deltas: requires --json")
	case o.deltas && o.noWait:
		return usagef("--deltas: cannot be used with --no-wait")
	}
	events, err := o.events()
	if err != nil {
		return err
	}
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if o.noWait {
		return o.deliver(ctx, to, events)
	}
	if o.deltas || !o.json && o.outTerminal {
		o.noteNotLive()
	}
	turn := observedTurn{conversation: to}
	if o.json {
		err = o.printTurn(ctx, &turn, events)
	} else {
		err = o.ask(ctx, &turn, events)
	}
	if ctx.Err() != nil {
		advice := fmt.Sprintf("follow it with \"%s events -n %s --follow\"", o.program(), o.name)
		if turn.isAnswered {
			advice += fmt.Sprintf(", stop it with \"%s interrupt -n %s\"", o.program(), o.name)
		}
		o.note("stopped waiting; %s (%s)", turn.remains(ctx), advice)
		return ctx.Err()
	}
	return err
}

// observedTurn remembers how far the turn of a message has come.
type observedTurn struct {
	conversation
	isRecorded, isAnswered bool
}

func (t *observedTurn) Ask(ctx context.Context, events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range t.conversation.Ask(ctx, events...) {
			switch e.Body.(type) {
			case nil:
			case event.LLMRequestStarted, event.TextDelta, event.ReasoningDelta, event.AssistantMessage:
				t.isAnswered = true
			default:
				t.isRecorded = true
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// remains says what happens after the wait has stopped, and ctx with it.
func (t *observedTurn) remains(ctx context.Context) string {
	isUnattended := false
	if t.isAnswered || t.isRecorded {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), describeTimeout)
		defer cancel()
		since, err := t.UnattendedSince(ctx)
		isUnattended = err == nil && !since.IsZero()
	}
	switch {
	case t.isAnswered && isUnattended:
		return "the answer waits for a worker, and continues when one takes it"
	case t.isAnswered:
		return "the answer continues"
	case isUnattended:
		return "the message is recorded, and its answer waits for a worker"
	case t.isRecorded:
		return "the message is recorded, and its answer has not begun yet"
	}
	return "no worker has recorded the message yet; once Temporal has stored it, the next worker answers it"
}

func (o sendOptions) events() ([]event.Event, error) {
	events, err := attachAll(o.attachments)
	if err != nil {
		return nil, err
	}
	text, err := o.readMessage(o.message, o.hasMessage)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" && len(events) == 0 {
		return nil, usagef("message: empty (want text or an attachment)")
	}
	body := event.UserMessage{Content: text}
	if o.hasSettings {
		if body.Settings, err = parseSettings("--settings", o.settings); err != nil {
			return nil, err
		}
	}
	message, err := input(body)
	if err != nil {
		return nil, err
	}
	return append(events, message), nil
}

// readMessage returns the text of -m, or that on standard input.
func (a *app) readMessage(text string, isSet bool) (string, error) {
	switch {
	case isSet && text != "-":
		return text, nil
	case !isSet && a.inTerminal:
		return "", usagef("message: missing (use -m TEXT, or pipe the text to standard input)")
	}
	data, err := readAtMost(a.in, wire.MaxStoredBytes)
	if err != nil {
		return "", usagef("message on standard input: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

type delivered struct {
	ContextName string `json:"contextName"`
	client.Receipt
}

func (o sendOptions) deliver(ctx context.Context, to conversation, events []event.Event) error {
	all := delivered{ContextName: to.Name()}
	for _, input := range chat.Inputs(events) {
		sent, err := to.Send(ctx, input...)
		if err != nil {
			return err
		}
		all.ClientEventIDs = append(all.ClientEventIDs, sent.ClientEventIDs...)
		all.EventIDs = append(all.EventIDs, sent.EventIDs...)
	}
	if o.json {
		return o.printJSON(all)
	}
	if len(all.EventIDs) < len(all.ClientEventIDs) {
		o.note("sent to %s; no worker has recorded it yet", to.Name())
		return nil
	}
	o.note("sent to %s", to.Name())
	return nil
}

func (o sendOptions) printTurn(ctx context.Context, to conversation, events []event.Event) error {
	var end event.Body
	for e, err := range o.turn(ctx, to, events) {
		if err != nil {
			return err
		}
		if e.Tag().Class() == event.ClassEphemeral && !o.deltas {
			continue
		}
		if err := o.printJSON(e); err != nil {
			return err
		}
		if endsTurn(e.Body) {
			end = e.Body
		}
	}
	return turnError(end)
}
