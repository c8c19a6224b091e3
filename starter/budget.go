package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

type budgetOptions struct {
	setOptions
	label  string
	tenant string // of the label
	tokens *int64
	cost   *float64
	none   bool
}

func newBudgetCommand(a *app) *cobra.Command {
	o := budgetOptions{setOptions: setOptions{app: a}}
	command := &cobra.Command{
		Use:   "budget (-n NAME [--tokens N] [--cost USD] [--none] | --label LABEL=VALUE [--tenant NAME]) [--json]",
		Short: "Show or set the budget of a context, or show the budget of a label",
		Long: `With --tokens, --cost or --none, set the budget of a context, which limits the
usage of all its requests, and show the event as recorded. The command replaces
both limits. A request that could exceed a limit fails before it is sent. Answers
under a budget have at most 4,096 tokens, unless --max-tokens of "set provider" or
"set request" sets another limit. The context is created if it does not exist.

Otherwise, show the budget of a context and its usage. With --label, show today's
usage of a label and its daily budget, which the worker's operator sets. Each
tenant has a budget of its own for a label; that of the label "tenant" limits the
tenant. Days are in UTC. A worker must be running.`,
		Example: `  starter budget -n demo --tokens 100000 --cost 2.50
  starter budget -n demo
  starter budget --label team=support`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			body, isSet, err := o.body()
			switch {
			case err != nil:
				return err
			case isSet:
				return runSet(command.Context(), o.setOptions, body)
			case o.label != "":
				return showLabelBudget(command.Context(), o)
			default:
				return showBudget(command.Context(), o)
			}
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.name, "name", "n", "", nameUsage)
	flags.StringVar(&o.label, "label", "", "show the daily budget of a label, `LABEL=VALUE`")
	flags.StringVar(&o.tenant, "tenant", "", "`NAME` of the tenant whose budget of the label is shown (default: that of contexts without a tenant)")
	int64Field(flags, &o.tokens, "tokens", "maximum `NUMBER` of input and output tokens, 0 to 1,000,000,000,000 (default: no limit)")
	floatField(flags, &o.cost, "cost", "", "maximum cost in `USD`, 0 or 0.000001 to 1,000,000,000; requires prices of the models (default: no limit)")
	flags.BoolVar(&o.none, "none", false, "remove the budget")
	flags.BoolVar(&o.json, "json", false, "print the budget, or the recorded event, as one line of JSON")
	return command
}

func (o *budgetOptions) body() (body event.BudgetSet, isSet bool, err error) {
	body.Tokens = o.tokens
	if o.cost != nil {
		micros, ok := event.MicrosOf(*o.cost)
		if !ok {
			return body, false, usagef("--cost %v: out of range (0, or 0.000001 to 1,000,000,000)", *o.cost)
		}
		body.CostMicros = &micros
	}
	isLimited := !event.Budget(body).IsZero()
	switch {
	case o.none && isLimited:
		return body, false, usagef("--none: cannot be used with --tokens or --cost")
	case o.label != "" && (o.name != "" || isLimited || o.none):
		return body, false, usagef("--label: cannot be used with --name, --tokens, --cost or --none (the worker's operator sets the budgets of labels)")
	case o.tenant != "" && o.label == "":
		return body, false, usagef("--tenant: requires --label")
	case o.label != "" && strings.IndexByte(o.label, '=') < 1:
		return body, false, usagef("--label %q: want LABEL=VALUE", o.label)
	}
	return body, isLimited || o.none, nil
}

// budget is what "starter budget" shows about a context.
type budget struct {
	ContextName string        `json:"contextName"`
	Budget      *event.Budget `json:"budget"`
	Used        event.Amount  `json:"used"`
}

func showBudget(ctx context.Context, o budgetOptions) error {
	of, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	state, err := of.State(ctx)
	if err != nil {
		return err
	}
	found := budget{ContextName: o.name, Budget: state.Config.Budget, Used: state.Usage.Amount()}
	switch {
	case o.json:
		return o.printJSON(found)
	case found.Budget == nil:
		o.note("context %s has no budget", o.name)
		return nil
	default:
		return show.Budget(o.out, o.name, *found.Budget, found.Used, event.Amount{})
	}
}

func showLabelBudget(ctx context.Context, o budgetOptions) error {
	c, err := o.connect(ctx)
	if err != nil {
		return err
	}
	of, err := c.Tenant(o.tenant)
	if err != nil {
		return exit.UsageError{Err: err}
	}
	label, value, _ := strings.Cut(o.label, "=")
	state, err := of.LabelBudget(ctx, label, value)
	if err != nil {
		return err
	}
	isUnknown := state == wire.BudgetState{Day: state.Day}
	if isUnknown {
		o.note("%s on %s: no budget is known (the --providers or --config file of the workers has none, or no request has used it)", o.label, state.Day)
	}
	switch {
	case o.json && isUnknown:
		return o.printJSON(map[string]string{"day": state.Day})
	case o.json:
		return o.printJSON(state)
	case isUnknown:
		return nil
	}
	return show.Budget(o.out, o.label+" on "+state.Day, state.Limit, state.Spent, state.Reserved)
}
