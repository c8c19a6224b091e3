package agent

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Names of the hooks that check requests and answers. The script of a message names the hook
// that acts on the message.
const (
	Instruct      = "instruct"       // adds Script.Instructed to the request
	Refuse        = "refuse"         // refuses the request
	FailsOnce     = "fails-once"     // fails on odd attempts
	FailsOpen     = "fails-open"     // fails and lets the request pass
	StopsAnswer   = "stops-answer"   // refuses the answer while the model sends it
	ChangesAnswer = "changes-answer" // puts Checked before the answer
	RefusesAnswer = "refuses-answer"
)

// Checked begins the answers that ChangesAnswer changed.
const Checked = "checked "

// RefusesText reports whether a hook refuses all answers, so that none of their text is recorded.
func RefusesText(name string) bool {
	return name == Refuse || name == StopsAnswer || name == RefusesAnswer
}

func hooks(url string) []hook.Hook {
	return []hook.Hook{
		before(Instruct, func(m rig.Message, _ hook.Request) (hook.Verdict, error) {
			return hook.Verdict{Change: &hook.Change{HookChange: event.HookChange{Instructions: m.Script.Instructed}}, Reason: m.Key}, nil
		}),
		before(Refuse, refuse),
		before(FailsOnce, func(_ rig.Message, r hook.Request) (hook.Verdict, error) {
			if r.Attempt%2 == 1 {
				return hook.Verdict{}, errors.New("odd attempt")
			}
			return hook.Verdict{}, nil
		}),
		open(before(FailsOpen, func(rig.Message, hook.Request) (hook.Verdict, error) {
			return hook.Verdict{}, errors.New("out of order")
		})),
		beside(before(StopsAnswer, refuse)),
		after(ChangesAnswer, func(text string) hook.Verdict {
			if text == "" {
				return hook.Verdict{}
			}
			return hook.ReplaceText(Checked+text, "checked")
		}),
		after(RefusesAnswer, func(string) hook.Verdict { return hook.Refuse("refused") }),
		observe(url),
	}
}

func refuse(m rig.Message, _ hook.Request) (hook.Verdict, error) { return hook.Refuse(m.Key), nil }

func open(h hook.Hook) hook.Hook {
	h.OnFailure = hook.Open
	return h
}

func beside(h hook.Hook) hook.Hook {
	h.Beside, h.Withhold = true, true
	return h
}

func before(name string, check func(rig.Message, hook.Request) (hook.Verdict, error)) hook.Hook {
	return hook.Hook{Name: name, Before: func(_ context.Context, r hook.Request) (hook.Verdict, error) {
		if m, ok := named(r, name); ok {
			return check(m, r)
		}
		return hook.Verdict{}, nil
	}}
}

func after(name string, check func(text string) hook.Verdict) hook.Hook {
	return hook.Hook{Name: name, After: func(_ context.Context, r hook.Request, answer hook.Response) (hook.Verdict, error) {
		if _, ok := named(r, name); ok {
			return check(answer.Text), nil
		}
		return hook.Verdict{}, nil
	}}
}

// named returns the newest message if it names the hook.
func named(r hook.Request, name string) (m rig.Message, ok bool) {
	for _, message := range slices.Backward(r.Messages) {
		if message.Role == reducer.RoleUser {
			if !strings.Contains(message.Content, name) {
				return m, false
			}
			m, err := rig.ParseMessage(message.Content)
			return m, err == nil && m.Script.Hook == name
		}
	}
	return m, false
}
