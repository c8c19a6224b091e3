package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/tool"
)

// Names of the tools. Clients execute Ask and AskGuarded.
const (
	Once       = "once"    // not idempotent
	Again      = "again"   // idempotent
	Guarded    = "guarded" // as Once; requires an approval
	Large      = "large"   // has a result of Arguments.Size bytes
	Fails      = "fails"
	Panics     = "panics"
	Hangs      = "hangs" // until its timeout
	Ask        = "ask"
	AskGuarded = "ask_guarded" // requires an approval
)

// Arguments of all tools.
type Arguments struct {
	Key string `json:"key"`
	Ms  int    `json:"ms,omitempty"` // duration of the call
	// Retries is the number of attempts of Again that fail before one succeeds.
	Retries int  `json:"retries,omitempty"`
	Size    int  `json:"size,omitempty"`
	Deaf    bool `json:"deaf,omitempty"` // Hangs ignores its timeout
	// Approve makes a call of Once require an approval.
	Approve bool `json:"approve,omitempty"`
}

// String returns the JSON.
func (a Arguments) String() string {
	data, _ := json.Marshal(a) // always encodes
	return string(data)
}

// Settings returns limits with the tools of the soak test and their approval rules.
func Settings(limits event.SetTools) event.SetTools {
	for _, name := range []string{Once, Again, Guarded, Large, Fails, Panics, Hangs} {
		limits.Tools = append(limits.Tools, event.Tool{Pattern: name})
	}
	schema := event.Object(`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`)
	for _, name := range []string{Ask, AskGuarded} {
		limits.Tools = append(limits.Tools, event.Tool{Name: name, Description: "Ask the user", Parameters: schema})
	}
	limits.Approve = event.ApprovalRules{
		{Tool: Guarded}, {Tool: AskGuarded},
		{Tool: Once, When: event.Object(`{"properties":{"approve":{"const":true}},"required":["approve"]}`)},
	}
	return limits
}

// NeedsApproval reports whether a call requires an approval by the rules of [Settings].
func NeedsApproval(name string, a Arguments) bool {
	return name == Guarded || name == AskGuarded || name == Once && a.Approve
}

// IsClients reports whether a client executes a tool.
func IsClients(name string) bool { return name == Ask || name == AskGuarded }

type server struct{ url string }

func (s server) tools() (tools []tool.Tool, err error) {
	for name, options := range map[string][]tool.Option{
		Once: nil, Guarded: nil, Fails: nil, Panics: nil, Large: {tool.Idempotent()},
		Again: {tool.Idempotent(), tool.Attempts(3)},
		Hangs: {tool.Timeout(500 * time.Millisecond)},
	} {
		t, err := tool.New(name, "Test "+name, func(ctx context.Context, in Arguments) (string, error) { return s.call(ctx, name, in) }, options...)
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func (s server) call(ctx context.Context, name string, in Arguments) (string, error) {
	begun := Execution{tool.ContextName(ctx), tool.CallID(ctx), name, json.RawMessage(in.String())}
	n, err := begin(ctx, s.url, begun)
	if err != nil {
		return "", err
	}
	tool.Progress(ctx, "begun")
	pause.For(ctx, time.Duration(in.Ms)*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case name == Fails:
		return "", errors.New("it fails: " + in.Key)
	case name == Panics:
		panic("it panics: " + in.Key)
	case name == Hangs && in.Deaf:
		time.Sleep(8 * time.Second) // longer than the worker waits
	case name == Hangs:
		<-ctx.Done()
		return "", context.Cause(ctx)
	case n <= in.Retries:
		return "", tool.Retryable(fmt.Errorf("attempt %d fails: %s", n, in.Key))
	}
	return Result(in), nil
}

// Result is the value that a call returns.
func Result(a Arguments) string {
	text := "result of " + a.Key + " "
	return text + strings.Repeat("x", max(0, a.Size-len(text)))
}
