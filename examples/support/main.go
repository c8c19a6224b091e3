// Command support answers the customers of a shop. It is an agent with Go functions as tools, an
// approval for large refunds, a guard against card numbers, data of its own in messages, a budget and a fallback
// model. `make example` runs it. Set OPENAI_API_KEY or OPENAI_BASE_URL, and ANTHROPIC_API_KEY for the fallback.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"regexp"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func main() {
	if os.Getenv("OPENAI_API_KEY")+os.Getenv("OPENAI_BASE_URL") == "" {
		log.Fatalln("support: no model: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server")
	}
	if err := run(context.Background()); err != nil {
		log.Fatalln("support:", err)
	}
}

func run(ctx context.Context) error {
	// The addresses are in variables such as TEMPORAL_ADDRESS.
	conn, err := contexts.Connect(ctx, client.Config{TaskQueue: "support", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer conn.Close()
	stop, err := startWorker(conn, llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(os.Getenv)}))
	if err != nil {
		return err
	}
	defer stop()
	customer, err := conn.Client().Open("support-demo")
	if err != nil {
		return err
	}
	return talk(ctx, customer, os.Stdin, os.Stdout, settings("anthropic", "claude-haiku-4-5")...)
}

func startWorker(conn *contexts.Connection, models *llm.Adapter) (stop func(), err error) {
	findOrder, err1 := tool.New("find_order", "Find an order of the customer", find)
	refundOrder, err2 := tool.New("refund_order", "Refund an order to the customer", refund, tool.Idempotent())
	tools, err3 := tool.NewSet(tool.Options{}, findOrder, refundOrder)
	if err = errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	guards := []hook.Hook{{Name: "card-numbers", Before: guard, Beside: true, Withhold: true}}
	w, err := conn.NewWorker(contexts.Options{Models: models, Tools: tools, Hooks: guards, Reduce: reduce})
	if err != nil {
		return nil, err
	}
	return w.Stop, w.Start()
}

// reduce tells the model from which page a customer writes, which is a field of our own in the message.
func reduce(current reducer.ReducedContext, events ...event.Event) reducer.ReducedContext {
	for _, e := range events {
		if message, ok := e.Body.(event.UserMessage); ok && e.Extra["page"] != nil {
			message.Content += fmt.Sprintf("\n\n[sent from the page %s]", e.Extra["page"])
			e.Body = message
		}
		current = reducer.Reduce(current, e)
	}
	return current
}

func settings(fallback, fallbackModel string) []event.Event {
	return []event.Event{
		event.New(event.SystemPrompt{Content: "You support the customers of a shop. Look orders up before you answer."}),
		event.New(event.SetProviderConfig{ProviderID: fallback, Model: fallbackModel, AsFallback: true}),
		event.New(event.SetTools{
			Tools:   event.ToolList{{Pattern: "find_order"}, {Pattern: "refund_order"}},
			Approve: event.ApprovalRules{{Tool: "refund_order", When: event.Object(`{"properties":{"cents":{"minimum":5001}}}`)}},
		}),
		event.New(event.BudgetSet{Tokens: new(int64(50_000))}),
	}
}

type order struct {
	Number string `json:"number" jsonschema:"the number of the order, like A-1001"`
	Cents  int    `json:"cents,omitempty" jsonschema:"the amount"`
}

var orders = map[string]int{"A-1001": 4200, "A-1002": 99_00}

func find(_ context.Context, in order) (order, error) {
	if cents, ok := orders[in.Number]; ok {
		return order{in.Number, cents}, nil
	}
	return order{}, errors.New("no such order")
}

// refund stands for a request to a bank, with the id of the call as the idempotency key: a repetition pays once.
func refund(ctx context.Context, in order) (string, error) {
	if in.Cents < 1 || in.Cents > orders[in.Number] {
		return "", errors.New("no such order, or cents is out of range (1 to the amount of the order)")
	}
	return fmt.Sprintf("refunded %d cents (%s/%s)", in.Cents, tool.ContextName(ctx), tool.CallID(ctx)), nil
}

var cardNumber = regexp.MustCompile(`\b\d{4}([ -]?\d{4}){3}\b`)

// guard stops the answer to a message with a card number.
func guard(_ context.Context, r hook.Request) (hook.Verdict, error) {
	if newest := r.Messages[len(r.Messages)-1]; !cardNumber.MatchString(newest.Content) {
		return hook.Verdict{}, nil
	}
	return hook.Refuse("please do not send card numbers"), nil
}

// talk sends each line as a message, the first one with the settings, and asks for approvals.
func talk(ctx context.Context, c *client.Context, in io.Reader, out io.Writer, settings ...event.Event) error {
	for lines := bufio.NewScanner(in); lines.Scan(); settings = nil {
		message := event.New(event.UserMessage{Content: lines.Text()})
		message.Extra = map[string]json.RawMessage{"page": json.RawMessage(`"/orders"`)}
		for e, err := range c.Ask(ctx, append(settings, message)...) {
			if err != nil {
				return err
			}
			switch body := e.Body.(type) {
			case event.AssistantMessage: // empty if it only calls tools
				fmt.Fprintln(out, body.Content)
			case event.ApprovalRequested:
				fmt.Fprintln(out, "Approve the refund? (y/n)")
				decided := event.ApprovalDecided{ToolCallID: body.ToolCallID, Decision: event.Deny}
				if lines.Scan() && lines.Text() == "y" {
					decided.Decision = event.Approve
				}
				if _, err := c.Send(ctx, event.New(decided)); err != nil {
					return err
				}
			case event.LLMRequestFailed:
				fmt.Fprintln(out, "Sorry:", body.Error)
			}
		}
	}
	return nil
}
