package hook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func pass(context.Context, hook.Request) (hook.Verdict, error) { return hook.Verdict{}, nil }

func passAfter(context.Context, hook.Request, hook.Response) (hook.Verdict, error) {
	return hook.Verdict{}, nil
}

func ignore(context.Context, hook.Events) error { return nil }

func TestInvalidHooksAreRejected(t *testing.T) {
	for want, hooks := range map[string][]hook.Hook{
		`hook "": name: empty`:                                {{Before: pass}},
		`hook a: another hook has the same name`:              {{Name: "a", Before: pass}, {Name: "a", After: passAfter}},
		`hook a: neither Before, After nor OnEvent is set`:    {{Name: "a"}},
		`hook a: field FromStart requires OnEvent`:            {{Name: "a", Before: pass, FromStart: true}},
		`hook a: field SkipAfter requires OnEvent`:            {{Name: "a", OnEvent: ignore, SkipAfter: time.Hour}},
		`hook a: field SkipAfter: want 0s or more, got -1s`:   {{Name: "a", OnEvent: ignore, OnFailure: hook.Open, SkipAfter: -time.Second}},
		`hook a: field Beside requires Before`:                {{Name: "a", Beside: true, After: passAfter}},
		`hook a: field Withhold requires Beside or After`:     {{Name: "a", Withhold: true, Before: pass}},
		`hook a: timeout -1s: want 0s or more`:                {{Name: "a", Timeout: -time.Second, Before: pass}},
		`hook a: field OnFailure "ajar": want closed or open`: {{Name: "a", OnFailure: "ajar", Before: pass}},
		fmt.Sprintf(`17 hooks (at most %d)`, hook.MaxHooks):   make([]hook.Hook, 17),
	} {
		require.ErrorContains(t, hook.Validate(hooks), want)
	}
	require.NoError(t, hook.Validate([]hook.Hook{
		{Name: "a", Before: pass, After: passAfter, Beside: true, Withhold: true, OnFailure: hook.Open}, {Name: "b", After: passAfter},
		{Name: "c", OnEvent: ignore, FromStart: true, OnFailure: hook.Open, SkipAfter: time.Minute},
	}))
}

func TestAVerdictMustFitItsStage(t *testing.T) {
	request := hook.AddInstructions("x", "")
	answer := hook.ReplaceText("x", "")
	require.NoError(t, request.Validate(event.HookBefore))
	require.ErrorContains(t, request.Validate(event.HookBeside), "it was already sent")
	require.ErrorContains(t, request.Validate(event.HookAfter), "only a text")
	require.NoError(t, answer.Validate(event.HookAfter))
	require.ErrorContains(t, answer.Validate(event.HookBefore), "cannot contain a text")
	require.ErrorContains(t, hook.ReplaceText(strings.Repeat("x", hook.MaxTextBytes+1), "").Validate(event.HookAfter), "524289 bytes")
	require.NoError(t, hook.Refuse("").Validate(event.HookBeside))
	require.NotEmpty(t, hook.Refuse("").Refuse, "a refusal without a reason refuses")
}

func TestAChangeModifiesNoMessage(t *testing.T) {
	state := &event.ProviderState{ProviderID: "p"}
	messages := []reducer.Message{
		{Role: reducer.RoleUser, Content: "I am Ann", EventID: "demo:0002"},
		{Role: reducer.RoleAssistant, Content: "Hi Ann", EventID: "demo:0004", ProviderState: state},
	}
	change := event.HookChange{Instructions: "No names.", Messages: []event.ReplacedMessage{{EventID: "demo:0004", Content: "Hi"}}}
	changed, settings, err := hook.Apply(change, messages, event.RequestSettings{Seed: new(int64(7))})
	require.NoError(t, err)
	require.Equal(t, []reducer.Message{
		{Role: reducer.RoleSystem, Content: "No names."}, messages[0],
		{Role: reducer.RoleAssistant, Content: "Hi", EventID: "demo:0004"},
	}, changed)
	require.Equal(t, int64(7), *settings.Seed)
	require.Equal(t, state, messages[1].ProviderState)

	again, _, err := hook.Apply(event.HookChange{Instructions: "Be brief."}, changed, event.RequestSettings{})
	require.NoError(t, err)
	require.Equal(t, "No names.\n\nBe brief.", again[0].Content)
	require.Equal(t, "No names.", changed[0].Content)
}
