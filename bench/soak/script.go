package main

import (
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/bench/rig"
	"github.com/seed-9ed7edd4/chronicle/bench/soak/agent"
)

var (
	callNames = []string{
		agent.Once, agent.Once, agent.Again, agent.Again, agent.Guarded, agent.Guarded, agent.Large, agent.Fails, agent.Panics, agent.Hangs,
		agent.Ask, agent.AskGuarded, noTool,
	}
	hookNames = []string{
		agent.Instruct, agent.Instruct, agent.Refuse, agent.FailsOnce, agent.FailsOpen, agent.StopsAnswer, agent.ChangesAnswer,
		agent.ChangesAnswer, agent.RefusesAnswer,
	}
)

const (
	noTool     = "nothing" // a tool that does not exist
	maxCallMs  = 1500
	invalid    = `{"key":7}`
	maxTexts   = 300_000 // bytes of a result
	maxRetries = 2
)

// script returns the calls and the hook of a message.
func (u *user) script(key string) (s rig.Script) {
	if u.kind.calls && u.rand.IntN(3) > 0 {
		most := max(u.kind.steps, 4)
		for n := range 1 + u.rand.IntN(most) {
			var calls []rig.Call
			for i := range 1 + u.rand.IntN(3) {
				calls = append(calls, u.call(fmt.Sprintf("%s-%d-%d", key, n, i)))
			}
			if u.rand.IntN(10) == 0 {
				// The third identical call of a turn is not executed.
				calls = append(calls, calls[0], calls[0])
			}
			s.Steps = append(s.Steps, calls)
		}
	}
	if u.kind.hooks && u.rand.IntN(2) == 0 {
		s.Hook = hookNames[u.rand.IntN(len(hookNames))]
		s.Withheld = s.Hook == agent.Refuse
		if s.Hook == agent.Instruct {
			s.Instructed = "instructed:" + key
		}
	}
	return s
}

// call returns a call. Its id is its key, an id that other calls share, or empty.
func (u *user) call(key string) rig.Call {
	id := []string{key, "call_0", ""}[u.rand.IntN(3)]
	name := callNames[u.rand.IntN(len(callNames))]
	a := agent.Arguments{Key: key, Ms: u.rand.IntN(maxCallMs)}
	if u.rand.IntN(2) == 0 {
		a.Ms = 0
	}
	switch name {
	case agent.Again:
		a.Retries = u.rand.IntN(maxRetries + 1)
	case agent.Large:
		a.Size = u.rand.IntN(maxTexts)
	case agent.Hangs:
		a.Deaf = u.rand.IntN(4) == 0
	case agent.Once:
		a.Approve = u.rand.IntN(4) == 0
	}
	arguments := a.String()
	if u.rand.IntN(20) == 0 {
		arguments = invalid
	}
	return rig.Call{ID: id, Name: name, Arguments: arguments}
}
