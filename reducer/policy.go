package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// PolicyRule is what a delivery policy does with a message that wants an answer while an
// attempt or a tool call is running. The zero rule queues the message until the turn ends.
type PolicyRule struct {
	// Interrupts stops the request if its attempt does not include the message.
	Interrupts bool
	// Steers includes the message in the next step of the turn; without one, it is queued.
	Steers bool
	// Rejects records an [event.InputRejected] instead of the input.
	Rejects bool
}

// policies has an entry for each of [event.Policies].
// testdata/session/policy_NAME.txtar tells the story of the policy NAME.
var policies = map[event.Policy]PolicyRule{
	event.PolicyInterrupt: {Interrupts: true},
	event.PolicyQueue:     {},
	event.PolicyReject:    {Rejects: true},
	event.PolicySteer:     {Steers: true},
}

// RuleOf returns the rule of a policy. An unknown policy queues.
func RuleOf(policy event.Policy) PolicyRule { return policies[policy] }

func (d *decision) policy() PolicyRule { return RuleOf(d.Reduced.Config.Delivery.Policy) }
