package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// PolicyRule is what a policy does with a message that requires an answer while an attempt or a call
// runs. The zero rule queues the message until the turn ends.
type PolicyRule struct {
	Interrupts bool // stops the request if its attempt does not include the message
	Steers     bool // includes the message in the next step of the turn, or queues it
	Rejects    bool // records an [event.InputRejected] instead
}

// The story of each policy is testdata/session/policy_NAME.txtar.
var policies = map[event.Policy]PolicyRule{
	event.PolicyInterrupt: {Interrupts: true},
	event.PolicyQueue:     {},
	event.PolicyReject:    {Rejects: true},
	event.PolicySteer:     {Steers: true},
}

// RuleOf returns the rule of a policy. An unknown policy queues.
func RuleOf(policy event.Policy) PolicyRule { return policies[policy] }

func (d *decision) policy() PolicyRule { return RuleOf(d.Reduced.Config.Delivery.Policy) }
