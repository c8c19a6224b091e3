package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
	"github.com/seed-9ed7edd4/chronicle/starter/evaluate"
)

type evalOptions struct {
	*app
	names        []string
	query        string
	provider     event.SetProviderConfig
	system       string
	hasProvider  bool
	hasSystem    bool
	hasQuery     bool
	output       string
	measure      string
	minAgreement float64
	concurrency  int
	limit        int
	json         bool
}

func newEvalCommand(a *app) *cobra.Command {
	o := evalOptions{app: a}
	command := &cobra.Command{
		Use:   "eval (--contexts QUERY | -n NAME) (--provider ID --model MODEL | --system TEXT) [flags]",
		Short: "Compare the recorded answers of contexts with those of another model or prompt",
		Long: `Ask the recorded questions again, and compare the answers. Each recorded answer is a
question: the request contains the conversation as it was before this answer, with
the recorded tool results, and offers the recorded tools. No tool is called, and
nothing is recorded in the contexts. Each question is asked twice: with the recorded
configuration, whose differences are chance, and with the candidate.

A worker sends the requests, so its operator's providers, keys, hooks and budgets of
labels apply, as do the costs. It repeats a request after a rate limit.

The answers are stored in PATH.jsonl as they arrive. The same command continues an
evaluation that was cut off, and asks again what failed. At the end, it writes the
report, PATH.html and PATH.json. It fails if a request was not answered, or below
--min-agreement.

Measures of the agreement with the recorded answers, from 0 to 1:

` + effectsUsage[evaluate.Measure]() + `
Tool calls are compared by name and arguments, in any order. No measure knows what a
text means, so compare the agreement of the candidate with that of the recorded
configuration.`,
		Example: `  starter eval -n demo --provider openai --model gpt-4o-mini
  starter eval --contexts 'ContextModel = "gpt-4o"' --system "Be brief." --output brief --min-agreement 0.8`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			for _, flag := range []string{"provider", "model", "base-url", "api-key-ref"} {
				o.hasProvider = o.hasProvider || command.Flags().Changed(flag)
			}
			o.hasSystem, o.hasQuery = command.Flags().Changed("system"), command.Flags().Changed("contexts")
			return runEval(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&o.names, "name", "n", nil, "`NAME` of a context"+nameRule+"; may be repeated")
	flags.StringVar(&o.query, "contexts", "", "Temporal list `FILTER` of the contexts, as in \"starter list --query\"; empty: all contexts")
	providerFlags(command, &o.provider, "required without --system")
	flags.StringVar(&o.system, "system", "", "system prompt `TEXT` of the candidate; empty: none (default: the recorded one)")
	flags.StringVarP(&o.output, "output", "o", "eval", "`PATH` of the files of the evaluation, without extension")
	flags.StringVar(&o.measure, "measure", string(evaluate.Words), "`MEASURE` of the agreement: exact, normalized or words")
	flags.Float64Var(&o.minAgreement, "min-agreement", 0, "fail if the mean agreement of the candidate is below this `NUMBER` from 0 to 1")
	flags.IntVar(&o.concurrency, "concurrency", 4, "maximum `NUMBER` of requests at the same time, 1 to 100")
	flags.IntVar(&o.limit, "limit", 0, "ask only the first `NUMBER` of questions; 0: all")
	flags.BoolVar(&o.json, "json", false, "print the sums as one line of JSON")
	return command
}

// settings validates the flags.
func (o evalOptions) settings() (s evaluate.Settings, err error) {
	for _, name := range o.names {
		if err := checkName(name); err != nil {
			return s, err
		}
	}
	switch {
	case len(o.names) == 0 && !o.hasQuery:
		return s, usagef("--contexts: missing (want a list filter, or -n NAME)")
	case len(o.names) > 0 && o.hasQuery:
		return s, usagef("--contexts: cannot be used with --name")
	case !o.hasProvider && !o.hasSystem:
		return s, usagef("--provider: missing (want --provider and --model, or --system)")
	case !slices.Contains(evaluate.Measure("").Values(), evaluate.Measure(o.measure)):
		return s, usagef("--measure %q: want exact, normalized or words", o.measure)
	case !(0 <= o.minAgreement && o.minAgreement <= 1):
		return s, usagef("--min-agreement %v: out of range (0 to 1)", o.minAgreement)
	case o.concurrency < 1 || o.concurrency > 100:
		return s, usagef("--concurrency %d: out of range (1 to 100)", o.concurrency)
	case o.limit < 0:
		return s, usagef("--limit %d: want 0 or more", o.limit)
	case o.output == "" || strings.HasSuffix(o.output, "/"):
		return s, usagef("--output %q: want the path of a file without extension", o.output)
	}
	for _, extension := range []string{".jsonl", ".html", ".json"} {
		if err := checkOutput(o.output + extension); err != nil {
			return s, err
		}
	}
	if o.hasProvider {
		if _, err := input(o.provider); err != nil {
			return s, nameFlags(err)
		}
		s.Provider = &o.provider
	}
	if o.hasSystem {
		s.System = &o.system
	}
	return s, nil
}

func runEval(ctx context.Context, o evalOptions) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	questions, err := o.questions(ctx, c)
	if err != nil {
		return err
	}
	results, err := evaluate.Open(o.output+".jsonl", settings)
	if err != nil {
		return err
	}
	defer results.Close()
	if err := o.ask(ctx, c, settings, questions, results); err != nil {
		return err
	}
	report := evaluate.NewReport(settings, evaluate.Measure(o.measure), questions, results)
	if err := errors.Join(
		replace(o.output+".html", report.WriteHTML),
		replace(o.output+".json", report.WriteJSON),
	); err != nil {
		return err
	}
	if err := o.printSums(report); err != nil {
		return err
	}
	failed, agreement := report.Baseline.Failed+report.Candidate.Failed, report.Candidate.Agreement
	switch {
	case failed > 0:
		return fmt.Errorf("eval: %s not answered, the first with %s (see %s.html; the same command asks again)",
			count(failed, "request"), report.FirstError(), o.output)
	case evaluate.Below(agreement, o.minAgreement):
		return fmt.Errorf("eval: the agreement of %s is %s (want %v or more)", settings.Name(), evaluate.Decimal(agreement), o.minAgreement)
	}
	return nil
}

func (o evalOptions) questions(ctx context.Context, c contextClient) (questions []evaluate.Question, err error) {
	names := o.names
	if o.hasQuery {
		for summary, err := range c.List(ctx, o.query) {
			if err != nil {
				return nil, explainFilter("--contexts", o.query, err)
			}
			names = append(names, summary.ContextName)
		}
		slices.Sort(names) // the order of a list changes
	}
	seen := map[string]bool{}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		isRepeated := seen[name]
		seen[name] = true
		return isRepeated
	})
	for _, name := range names {
		of, err := c.Open(name)
		if err != nil {
			return nil, err
		}
		log, err := readLog(ctx, of)
		if err != nil {
			return nil, fmt.Errorf("read context %s: %w", name, err)
		}
		questions = append(questions, evaluate.QuestionsOf(name, log)...)
		if o.limit > 0 && len(questions) >= o.limit {
			return questions[:o.limit], nil
		}
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("eval: no recorded answer in %s", count(len(names), "context"))
	}
	return questions, nil
}

// waitNotice is how long the first answer may take before a note says that a worker is needed.
const waitNotice = 15 * time.Second

func (o evalOptions) ask(ctx context.Context, c contextClient, settings evaluate.Settings, questions []evaluate.Question, results *evaluate.Results) error {
	waiting := time.AfterFunc(waitNotice, func() {
		o.eraseProgress()
		o.note("no answer yet; is a worker running on task queue %s?", o.taskQueue())
	})
	defer waiting.Stop()
	done := -1
	progress := func(p evaluate.Progress) {
		if done >= 0 {
			waiting.Stop()
		} else if p.Done > 0 {
			o.note("continuing: %d of %d answers are in %s.jsonl", p.Done, p.Total, o.output)
		}
		done = p.Done
		o.drawProgress(p)
	}
	ask := func(ctx context.Context, id string, q evaluate.Question, v evaluate.Variant) (client.Evaluated, error) {
		of, err := c.Open(q.ContextName)
		if err != nil {
			return client.Evaluated{}, err
		}
		answer, err := of.Evaluate(ctx, id, settings.Evaluation(q, v))
		if err != nil && ctx.Err() == nil && !errors.Is(err, client.ErrUnreachable) {
			return client.Evaluated{Error: event.Redact(err.Error(), 1000)}, nil
		}
		return answer, err
	}
	defer o.eraseProgress()
	return evaluate.Run(ctx, questions, results, o.concurrency, ask, progress)
}

func (o evalOptions) eraseProgress() {
	if o.errTerminal {
		fmt.Fprint(terminal.Raw(o.err), "\r\x1b[K")
	}
}

const progressWidth = 30 // cells

func (o evalOptions) drawProgress(p evaluate.Progress) {
	if !o.errTerminal {
		return
	}
	filled := progressWidth * p.Done / max(1, p.Total)
	text := fmt.Sprintf("\r[%s%s] %d of %d answers", strings.Repeat("#", filled), strings.Repeat("-", progressWidth-filled), p.Done, p.Total)
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	fmt.Fprint(terminal.Raw(o.err), text+"\x1b[K")
}

func (o evalOptions) printSums(r evaluate.Report) error {
	if o.json {
		r.Questions = nil
		return o.printJSON(r)
	}
	line := func(name string, s evaluate.Sum) {
		fmt.Fprintf(o.out, "%s: agreement %s, %d failed, %d tokens in, %d out, cost %s, %s\n",
			terminal.Line(name), evaluate.Percent(s.Agreement), s.Failed, s.InputTokens, s.OutputTokens, s.Cost(), s.Time())
	}
	fmt.Fprintf(o.out, "%s of %s, agreement by %s\n", count(len(r.Questions), "answer"), count(r.Contexts, "context"), r.Measure)
	line("recorded", r.Recorded)
	line("recorded configuration, again", r.Baseline)
	line(r.Settings.Name(), r.Candidate)
	_, err := fmt.Fprintf(o.out, "report: %s.html, %[1]s.json\n", terminal.Line(o.output))
	return err
}
