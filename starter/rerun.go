package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
	"github.com/seed-9ed7edd4/chronicle/terminal"
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
		Short: "Ask another model what a context was asked, and compare the answers",
		Long: `Begin a context with the settings of another one, but with another model or
system prompt, and ask it again what the user asked there, one message after the
other. The answers stand side by side: in two columns on a terminal, else in a
table of Markdown, or with --json as one object per turn and one that sums up.

` + exitReference,
		Example: `  starter rerun -n demo --as demo-mini --provider openai --model gpt-4o-mini
  starter rerun -n demo --at demo:0012 --as demo-brief --provider openai --model gpt-4o --system "Be brief."`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o.hasSystem = command.Flags().Changed("system")
			return runRerun(command.Context(), o)
		},
	}
	nameFlag(command, &o.name, "", nameUsage)
	flags := command.Flags()
	flags.StringVar(&o.at, "at", "", "ask no further than the event with this `ID`, like demo:0012 (default: all)")
	flags.StringVar(&o.as, "as", "", "`NAME` of the new context; required")
	providerFlags(command, &o.provider)
	flags.StringVar(&o.system, "system", "", "another system prompt, `TEXT`; empty: none (default: that of the context)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per line")
	return command
}

// compared is a turn as it was answered then and now.
type compared struct {
	Turn     int    `json:"turn"`
	Question string `json:"question"`
	Old      reply  `json:"old"`
	New      reply  `json:"new"`
}

// totals sum up the turns.
type totals struct {
	Turns int `json:"turns"`
	// Same is how many answers are the same to the letter, Failed how many of
	// the new ones are not whole.
	Same   int `json:"same"`
	Failed int `json:"failed"`
	// Old and New are what the replies took.
	Old reply `json:"old"`
	New reply `json:"new"`
}

func runRerun(ctx context.Context, o rerunOptions) error {
	if err := checkName(o.name); err != nil {
		return err
	}
	if o.at != "" {
		if err := o.checkAt(o.name, o.at); err != nil {
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
	c, from, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	questions, err := o.questions(ctx, from)
	if err != nil {
		return err
	}
	to, err := c.Open(o.as)
	if err != nil {
		return err
	}
	if err := mustBeNew(ctx, to); err != nil {
		return err
	}
	questions[0].inputs = append(settings, questions[0].inputs...)
	return o.compare(ctx, to, questions)
}

// settings are what the new context has in place of that of the other.
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
	var log []event.Event
	for e, err := range from.Events(ctx, "") {
		if err != nil {
			return nil, err
		}
		log = append(log, e)
	}
	through := event.Counter(o.at)
	if len(log) > 0 && through > event.Counter(log[len(log)-1].ID) {
		return nil, fmt.Errorf("--at %s: the log ends with %s", o.at, log[len(log)-1].ID)
	}
	questions := questionsOf(log, func(body event.Body) bool {
		switch body := body.(type) {
		case event.SetProviderConfig:
			return !body.AsFallback
		case event.SystemPrompt:
			return o.hasSystem
		}
		return false
	}, through)
	if len(questions) == 0 {
		return nil, fmt.Errorf("context %s was asked nothing", o.name)
	}
	return questions, nil
}

// mustBeNew refuses a context that is there.
func mustBeNew(ctx context.Context, c conversation) error {
	for _, err := range c.Events(ctx, "") {
		if errors.Is(err, session.ErrNoContext) {
			return nil
		}
		if err != nil {
			return err
		}
		break
	}
	return fmt.Errorf("rerun as context %s: %w", c.Name(), session.ErrExists)
}

// compare asks the questions and prints what comes of each.
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
		return fmt.Errorf("%d of %d questions were not answered", sum.Failed, sum.Turns)
	}
	return nil
}

// askAgain asks a question and waits for what becomes of it.
func (o rerunOptions) askAgain(ctx context.Context, to conversation, q question) (reply, error) {
	asked := -1
	var log []event.Event
	for e, err := range o.turn(ctx, to, q.inputs) {
		if err != nil {
			return reply{}, err
		}
		switch e.Tag() {
		case event.TagInputRejected:
			return reply{Problem: show.Note(e.Body)}, nil
		case event.TagUserMessage:
			asked = len(log)
		}
		log = append(log, e)
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

// unknown stands for what no log tells.
const unknown = "tokens and time are not known"

func (o rerunOptions) printTotals(sum totals) error {
	if o.json {
		return o.printJSON(sum)
	}
	_, err := fmt.Fprintf(o.out, "\nturns: %d, with the same answer: %d, not answered: %d\n%s: %s\n%s: %s\n",
		sum.Turns, sum.Same, sum.Failed, o.name, cmp.Or(sum.Old.costs(), unknown), o.as, cmp.Or(sum.New.costs(), unknown))
	return err
}
