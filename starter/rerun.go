package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type rerunOptions struct {
	*app
	name      string
	at        string
	as        string
	provider  event.SetProviderConfig
	system    string
	hasSystem bool
	json      bool
}

func newRerunCommand(a *app) *cobra.Command {
	o := rerunOptions{app: a}
	command := &cobra.Command{
		Use:   "rerun -n NAME --as NEW --provider ID --model MODEL [flags]",
		Short: "Repeat a conversation with another model and compare the answers",
		Long: `Create a context with the settings of another one, except for the model, the
tools and, with --system, the system prompt. It has no tools, so that no call is
made again. Send it the same user messages, one after the other, and show both
answers to each: in two columns on a terminal, as a Markdown table otherwise, or
with --json as one object per turn, followed by the totals.`,
		Example: `  starter rerun -n demo --as demo-mini --provider openai --model gpt-4o-mini
  starter rerun -n demo --at demo:0012 --as demo-brief --provider openai --model gpt-4o --system "Be brief."`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			o.hasSystem = command.Flags().Changed("system")
			return runRerun(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.at, "at", "", "stop at the event with this `ID`, like demo:0012 (default: the whole log)")
	flags.StringVar(&o.as, "as", "", "`NAME` of the new context; required")
	providerFlags(command, &o.provider, "required")
	flags.StringVar(&o.system, "system", "", "system prompt `TEXT`; empty: none (default: that of the context)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per line")
	return command
}

type compared struct {
	Turn     int    `json:"turn"`
	Question string `json:"question"`
	Old      reply  `json:"old"`
	New      reply  `json:"new"`
}

type totals struct {
	Turns int `json:"turns"`
	// Same is the number of identical answers, Failed that of missing or incomplete new ones.
	Same   int   `json:"same"`
	Failed int   `json:"failed"`
	Old    reply `json:"old"`
	New    reply `json:"new"`
}

func runRerun(ctx context.Context, o rerunOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	if o.at != "" {
		if err := o.checkEventID("--at", o.name, o.at); err != nil {
			return err
		}
	}
	if err := checkNewName(o.name, o.as); err != nil {
		return err
	}
	settings, err := o.settings()
	if err != nil {
		return nameFlags(err)
	}
	from, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	questions, err := o.questions(ctx, from)
	if err != nil {
		return err
	}
	to, err := o.client.Open(o.as)
	if err != nil {
		return err
	}
	if err := mustBeNew(ctx, to); err != nil {
		return err
	}
	questions[0].inputs = append(settings, questions[0].inputs...)
	return o.compare(ctx, to, questions)
}

func (o rerunOptions) settings() ([]event.Event, error) {
	bodies := []event.Body{o.provider}
	if o.hasSystem {
		bodies = append(bodies, event.SystemPrompt{Content: o.system})
	}
	var settings []event.Event
	for _, body := range bodies {
		e, err := input(body)
		if err != nil {
			return nil, err
		}
		settings = append(settings, e)
	}
	return settings, nil
}

func (o rerunOptions) questions(ctx context.Context, from conversation) ([]question, error) {
	log, err := readLog(ctx, from)
	if err != nil {
		return nil, err
	}
	through := event.Counter(o.at)
	if len(log) > 0 && through > event.Counter(log[len(log)-1].ID) {
		return nil, fmt.Errorf("--at %s: beyond the end of the log, %s (list the events with \"%s events -n %s\")", o.at, log[len(log)-1].ID, o.program(), o.name)
	}
	questions := questionsOf(log, func(body event.Body) bool {
		switch body := body.(type) {
		case event.SetProviderConfig:
			return !body.AsFallback
		case event.SystemPrompt:
			return o.hasSystem
		case event.SetTools:
			return true // the calls would be made again
		}
		return false
	}, through)
	if len(questions) == 0 {
		return nil, fmt.Errorf("rerun context %s: it has no user message to answer", o.name)
	}
	return questions, nil
}

func mustBeNew(ctx context.Context, c conversation) error {
	for _, err := range c.Events(ctx, "") {
		if errors.Is(err, client.ErrNoContext) {
			return nil
		}
		if err != nil {
			return err
		}
		break
	}
	return fmt.Errorf("rerun as context %s: %w", c.Name(), client.ErrExists)
}

func (o rerunOptions) compare(ctx context.Context, to conversation, questions []question) error {
	if !o.json && !o.outTerminal {
		fmt.Fprintf(o.out, "| turn | question | %s | %s |\n|---|---|---|---|\n", o.name, o.as)
	}
	sum := totals{Turns: len(questions)}
	for i, q := range questions {
		again, err := o.askAgain(ctx, to, q)
		if err != nil {
			return err
		}
		if again.Problem != "" {
			sum.Failed++
		} else if again.Answer == q.reply.Answer {
			sum.Same++
		}
		sum.Old.add(q.reply)
		sum.New.add(again)
		if err := o.print(compared{i + 1, q.text(), q.reply, again}); err != nil {
			return err
		}
	}
	if err := o.printTotals(sum); err != nil {
		return err
	}
	if sum.Failed > 0 {
		return fmt.Errorf("rerun: %d of %s not answered", sum.Failed, show.Count(sum.Turns, "message was", "messages were"))
	}
	return nil
}

func (o rerunOptions) askAgain(ctx context.Context, to conversation, q question) (reply, error) {
	asked := -1
	var log []event.Event
	for e, err := range o.turn(ctx, to, q.inputs) {
		if err != nil {
			return reply{}, err
		}
		if e.Tag() == event.TagUserMessage {
			asked = len(log)
		}
		log = append(log, e)
	}
	// Only the rejection of the turn's own input is its last event.
	if last := len(log) - 1; last >= 0 && log[last].Tag() == event.TagInputRejected {
		return reply{Problem: show.Note(log[last].Body)}, nil
	}
	if asked < 0 {
		return reply{}, turnError(nil)
	}
	return replyTo(log, asked), nil
}

func (o rerunOptions) print(c compared) error {
	var err error
	switch {
	case o.json:
		err = o.printJSON(c)
	case o.outTerminal:
		style := show.Style{Color: o.color}
		_, err = fmt.Fprintf(terminal.Raw(o.out), "%s\n%s\n", style.Bold(fmt.Sprintf("%d  %s", c.Turn, c.Question)),
			show.Columns(o.width, c.Old.text(), c.New.text()))
	default:
		_, err = fmt.Fprintf(o.out, "| %d | %s | %s | %s |\n", c.Turn, show.Cell(c.Question), show.Cell(c.Old.text()), show.Cell(c.New.text()))
	}
	return err
}

const unknown = "tokens and time unknown"

func (o rerunOptions) printTotals(sum totals) error {
	if o.json {
		return o.printJSON(sum)
	}
	_, err := fmt.Fprintf(o.out, "\nturns: %d, identical answers: %d, not answered: %d\n%s: %s\n%s: %s\n",
		sum.Turns, sum.Same, sum.Failed, o.name, cmp.Or(sum.Old.costs(), unknown), o.as, cmp.Or(sum.New.costs(), unknown))
	return err
}
