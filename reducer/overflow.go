package reducer

import (
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxCompactions bounds the Compactions of a [Request]. After that, the request is sent as it is.
const MaxCompactions = 4

// maxWindows bounds the learned windows of a session.
const maxWindows = 8

// Overflow is a request that exceeds the context window of its model.
type Overflow struct {
	Tokens int                `json:"tokens"` // of the input
	Window int                `json:"window"` // in tokens
	Source event.WindowSource `json:"source,omitempty"`
}

// bounded makes the numbers valid. It raises Tokens at least to the part of the window that triggers a
// compaction (trigger, in percent), because workers can count fewer tokens than the provider that rejected
// the request.
func (o Overflow) bounded(trigger int) Overflow {
	o.Window = min(max(o.Window, 1), event.MaxTokens)
	o.Tokens = min(max(o.Tokens, o.Window*trigger/100, 1), event.MaxTokens)
	if o.Source != event.WindowConfigured && o.Source != event.WindowLearned {
		o.Source = ""
	}
	return o
}

// Compaction is a summary of the beginning of the conversation, which the attempts of a request write.
// Its JSON is persisted.
//
//schema:rules {"properties":{"throughEventId":{"$ref":"EventID"},"messages":{"minimum":1},"tokens":{"minimum":0},"window":{"minimum":1}}}
type Compaction struct {
	Through    string `json:"throughEventId"` // as in [event.Compacted], like Messages
	Messages   int    `json:"messages"`
	ProviderID string `json:"providerId"` // of the attempt that was too long, like Model
	Model      string `json:"model"`
	// Asked is the newest event when scheduled: the summary lacks newer results of covered calls.
	Asked   string `json:"asked,omitempty"`
	Refused bool   `json:"refused,omitempty"` // by the provider; otherwise an estimate was too long
	Overflow
}

func (c Compaction) event(requestID string, strategy event.Strategy) event.Compacted {
	return event.Compacted{
		RequestID: requestID, Strategy: strategy, ThroughEventID: c.Through, Messages: c.Messages,
		TokensBefore: c.Tokens, Window: c.Window, WindowSource: c.Source, ProviderID: c.ProviderID, Model: c.Model,
	}
}

// Window is a context window learned from a rejection by the provider.
type Window struct {
	ProviderID string `json:"providerId"`
	Model      string `json:"model"`
	Tokens     int    `json:"tokens"` // as workers count them
}

// LearnedWindow returns the window of a model in tokens; 0 if no rejection has shown it.
func (s Session) LearnedWindow(providerID, model string) int {
	for _, w := range s.Windows {
		if w.ProviderID == providerID && w.Model == model {
			return w.Tokens
		}
	}
	return 0
}

func (d *decision) followCompaction(body event.Compacted) {
	d.Removed = d.Removed || body.Strategy != event.StrategyDropToolResults
	d.ContextTokens = 0
	if body.WindowSource != event.WindowLearned {
		return
	}
	learned := Window{body.ProviderID, body.Model, body.Window}
	d.Windows = slices.DeleteFunc(slices.Clone(d.Windows), func(w Window) bool {
		return w.ProviderID == learned.ProviderID && w.Model == learned.Model
	})
	d.Windows = append(d.Windows[max(0, len(d.Windows)-maxWindows+1):], learned)
}

// followAccepted forgets a learned window that an accepted request contradicts, for example because
// the rejection had another reason. The tokens of a learned window are counted by workers, and the provider
// may count up to twice as many.
func (d *decision) followAccepted(requestID string, usage event.Usage) {
	r := d.Request
	if r == nil || r.ID != requestID || !r.hasAttempt() {
		return
	}
	learned := d.LearnedWindow(r.ProviderID, r.Model)
	if learned == 0 || usage.InputTokens <= 2*learned {
		return
	}
	d.Windows = slices.DeleteFunc(slices.Clone(d.Windows), func(w Window) bool {
		return w.ProviderID == r.ProviderID && w.Model == r.Model
	})
	if len(d.Windows) == 0 {
		d.Windows = nil
	}
}

// mayCompact reports whether a compaction could shorten the next attempt.
func (d *decision) mayCompact() bool {
	r := d.Request
	return r.Compaction == nil && r.Compactions < MaxCompactions &&
		d.bestCut(d.Reduced.Config.Compaction.Limits().Strategies, 1, false).freed > 0
}

// compacts continues a request if its attempt was too long, or its summary took too long or failed with
// an error that is not retryable. It shortens the conversation if it can. It reports false if the
// request ends or falls back.
func (d *decision) compacts(in AttemptEnded) bool {
	r := d.Request
	isTooLong := in.Overflow != nil && r.Compactions < MaxCompactions
	isFailedSummary := r.Compaction != nil && in.Outcome == Failed && allowsFallback(in.Kind) &&
		(!in.Retryable || in.Kind == event.FailureTimeout)
	if !isTooLong && !isFailedSummary {
		return false
	}
	c, strategies := d.compactionOf(in), d.Reduced.Config.Compaction.Limits().Strategies
	if failed := r.Compaction; failed != nil {
		if isTooLong && c.Window < failed.Window { // the next attempt omits more messages
			next := *failed
			next.Window, next.Source = c.Window, c.Source
			d.recordAttemptEnd(event.AttemptFailed, in)
			r.Compactions, r.Compaction = r.Compactions+1, &next
			d.requeue()
			return true
		}
		c, r.Compaction = *failed, nil
		strategies = slices.DeleteFunc(slices.Clone(strategies), func(s event.Strategy) bool { return s == event.StrategySummarise })
	}
	return d.shortens(in, c, strategies, isFailedSummary)
}

// shortens continues a request with a shorter conversation, or as it is if nothing can be made shorter and only an estimate
// was too long: then the provider decides. isLast: a second estimate does not count.
func (d *decision) shortens(in AttemptEnded, c Compaction, strategies []event.Strategy, isLast bool) bool {
	r, enough := d.Request, d.excess(c.Overflow)
	best := d.bestCut(strategies, enough, c.Refused)
	if best.freed == 0 && c.Refused {
		return false
	}
	d.recordAttemptEnd(event.AttemptFailed, in)
	if r.Compactions++; best.freed == 0 {
		if isLast {
			r.Compactions = MaxCompactions
		}
		d.requeue()
		return true
	}
	if len(d.OpenToolCalls) > 0 {
		d.answerOpenToolCalls()
		best = d.bestCut(strategies, enough, c.Refused)
	}
	c.Through, c.Messages = best.through, d.countCovered(best.through)
	if best.strategy == event.StrategySummarise {
		r.Compaction = &c
	} else {
		d.record(c.event(r.ID, best.strategy))
	}
	d.requeue()
	return true
}

// compactionOf returns the compaction that the end of an attempt requires, without Through and Messages.
func (d *decision) compactionOf(in AttemptEnded) Compaction {
	c := Compaction{ProviderID: d.Request.ProviderID, Model: d.Request.Model, Refused: in.Outcome == Failed}
	if in.Overflow != nil {
		c.Overflow = in.Overflow.bounded(d.Reduced.Config.Compaction.Limits().Trigger)
	}
	return c
}

// excess returns how many bytes of the next attempt exceed the target.
func (d *decision) excess(o Overflow) int {
	size := 0
	for _, m := range MessagesOf(d.Session) {
		size += sizeOf(m)
	}
	target := o.Window * d.Reduced.Config.Compaction.Limits().Target / 100
	return max(1, (o.Tokens-target)*size/o.Tokens)
}

func (d *decision) countCovered(through string) int {
	messages := d.Reduced.Messages
	n := coveredBy(messages, through)
	if n > 0 && messages[0].Role == RoleSystem {
		n--
	}
	return n
}

// hasNewer reports whether a covered message changed after the summary was scheduled.
func (d *decision) hasNewer(c Compaction) bool {
	asked := event.Counter(c.Asked)
	return asked > 0 && slices.ContainsFunc(MessagesOf(d.Session), func(m Message) bool {
		return m.Role != RoleSystem && event.Counter(m.EventID) > asked
	})
}

// summaryOf returns the result of an attempt that summarises: its text is either a complete summary
// or nothing.
func (d *decision) summaryOf(in AttemptEnded) AttemptEnded {
	text := strings.TrimSpace(in.Text)
	in.Text, in.Reasoning, in.ProviderState, in.Calls = "", "", nil, nil
	switch {
	case in.Outcome == Completed || in.Outcome == Called:
		in.Outcome, in.Text = Completed, text
		if text == "" {
			in.Outcome, in.Kind, in.Error = Failed, event.FailureBadResponse, "the summary is empty"
		}
	case in.Outcome == Interrupted && in.Reason == event.ReasonTimeout:
		in.Outcome, in.Kind, in.Retryable, in.Error = Failed, event.FailureTimeout, true, "the summary took too long"
	}
	if d.Phase() == PhaseStopping && in.Outcome == Completed {
		in.Outcome, in.Text = Interrupted, ""
	}
	if in.Outcome == Failed {
		in.Error = "summarise the conversation to fit the context window: " + in.Error
	}
	return in
}

// summarised records the summary, unless the messages that it covers have changed, and requeues the
// request for its answer.
func (d *decision) summarised(in AttemptEnded) {
	r, c := d.Request, *d.Request.Compaction
	d.answerOpenToolCalls()
	if d.countCovered(c.Through) == c.Messages && !d.hasNewer(c) {
		compacted := c.event(r.ID, event.StrategySummarise)
		compacted.Summary = strings.ToValidUTF8(in.Text[:min(len(in.Text), event.MaxSummaryBytes)], "")
		compacted.Omitted = min(max(in.Omitted, 0), c.Messages)
		d.record(compacted)
		d.recordAttemptEnd(event.AttemptCompacted, in)
	} else {
		in.Error = "the messages of the summary have changed"
		d.recordAttemptEnd(event.AttemptFailed, in)
	}
	r.Compaction, r.Returns = nil, 0
	d.requeue()
}
