package event

import (
	"strings"
)

// SetDeliveryPolicy sets the effect of new input on a running answer, and how long input is debounced. At least one field is
// set; absent ones keep their value, except that a QuietPeriodMs raises a smaller maximum wait to the same value. A new
// context has [PolicyInterrupt], 10 and 500.
//
//schema:rules {"anyOf":[{"required":["policy"]},{"required":["quietPeriodMs"]},{"required":["maxWaitMs"]}]}
//doc:effect none; sets what new input does to a running answer
type SetDeliveryPolicy struct {
	// `interrupt` stops the answer, keeps its text, and answers again; `queue` answers new input after the running
	// answer; `reject` rejects the input; `steer` adds new input to the next step of the turn.
	Policy Policy `json:"policy,omitempty"`
	// The debounce: how long no input must arrive before a request is sent, in milliseconds; 0: no delay.
	QuietPeriodMs *int64 `json:"quietPeriodMs,omitempty" schema:"min=0,max=MaxQuietPeriodMs"`
	// The maximum delay of a request while input keeps arriving, in milliseconds; 0: no delay.
	MaxWaitMs *int64 `json:"maxWaitMs,omitempty" schema:"min=0,max=MaxQuietPeriodMs"`
}

// MaxQuietPeriodMs is a minute.
const MaxQuietPeriodMs = 60 * 1000

const TagSetDeliveryPolicy Tag = "SetDeliveryPolicyEvent"

func (SetDeliveryPolicy) Tag() Tag { return TagSetDeliveryPolicy }

func (b SetDeliveryPolicy) validate() error {
	if b == (SetDeliveryPolicy{}) {
		return fieldf("policy", "missing (want policy, quietPeriodMs or maxWaitMs)")
	}
	if err := knownOrNone("policy", b.Policy); err != nil {
		return err
	}
	if ms := b.QuietPeriodMs; ms != nil {
		if err := between("quietPeriodMs", *ms, 0, MaxQuietPeriodMs); err != nil {
			return err
		}
	}
	if ms := b.MaxWaitMs; ms != nil {
		return between("maxWaitMs", *ms, 0, MaxQuietPeriodMs)
	}
	return nil
}

// String describes the fields that are set: "queue, quiet period 300ms".
func (s SetDeliveryPolicy) String() string {
	var parts []string
	if s.Policy != "" {
		parts = append(parts, string(s.Policy))
	}
	if s.QuietPeriodMs != nil {
		parts = append(parts, "quiet period "+milliseconds(*s.QuietPeriodMs))
	}
	if s.MaxWaitMs != nil {
		parts = append(parts, "maximum wait "+milliseconds(*s.MaxWaitMs))
	}
	return strings.Join(parts, ", ")
}

func (b SetDeliveryPolicy) Words() (subject, text string) { return "set policy", b.String() }
func (SetDeliveryPolicy) Setting() string                 { return "Delivery" }

func (SetDeliveryPolicy) example() Body {
	return SetDeliveryPolicy{Policy: PolicyQueue, QuietPeriodMs: new(int64(300)), MaxWaitMs: new(int64(2_000))}
}

// Policy decides what new input does to a running answer.
type Policy string

// Delivery policies.
const (
	PolicyInterrupt Policy = "interrupt" // stops the answer, keeps the partial text, and answers again
	PolicyQueue     Policy = "queue"     // finishes the answer, then answers the new input
	PolicyReject    Policy = "reject"    // records an [InputRejected] instead of the input
	// PolicySteer includes the new input in the next step of the turn, or queues it after the last.
	PolicySteer Policy = "steer"
)

// Values returns all policies, the default first.
func (Policy) Values() []Policy {
	return []Policy{PolicyInterrupt, PolicyQueue, PolicyReject, PolicySteer}
}

// Effect returns what new input does to a running answer, for the help of commands.
func (p Policy) Effect() string {
	switch p {
	case PolicyInterrupt:
		return "stop the answer, keep its text, and answer again (the default)"
	case PolicyQueue:
		return "finish the answer, then answer the new input"
	case PolicyReject:
		return "reject the input"
	case PolicySteer:
		return "add the input to the next step of the turn, or answer it next"
	}
	return ""
}
