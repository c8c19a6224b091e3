package reducer

import (
	"cmp"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func (d *decision) startRequest() {
	d.Requests++
	d.Request = &Request{ID: event.FormatRequestID(d.ContextName, d.Requests), FirstAttempt: 1}
	d.enqueue()
}

func (d *decision) enqueue() {
	d.answerOpenToolCalls()
	d.Request.Asked = cmp.Or(d.Request.Limit, d.LastEventID())
	if d.Request.Limit == "" {
		d.Request.Settings = d.TriggerSettings
	}
	if c := d.Request.Compaction; c != nil {
		asked := *c
		asked.Asked = d.LastEventID()
		d.Request.Compaction = &asked
	}
	config, provider := d.Reduced.Config, d.provider()
	model := provider.Model
	if provider.IsDefault {
		model = ""
	}
	d.perform(StartRequest{
		RequestID:    d.Request.ID,
		Turn:         d.Requests,
		Fallback:     d.Request.Fallback,
		FirstAttempt: d.Request.FirstAttempt,
		Through:      d.LastEventID(),
		ThroughAt:    d.LastEventAt,
		Retry:        config.Retry,
		TimeoutMs:    config.TimeoutMs,
		MaxWaitMs:    config.Delivery.MaxWaitMs,
		Model:        model,
		Messages:     len(d.Reduced.Messages),
		Steps:        d.Request.Steps,
		Limit:        d.Request.Limit,
		MayCompact:   d.mayCompact(),
		Compaction:   d.Request.Compaction,
	})
}

func (d *decision) provider() ProviderConfig {
	if config := d.Reduced.Config; d.Request.Fallback && config.Fallback != nil {
		return *config.Fallback
	}
	return d.Reduced.Config.Primary
}

// requeue debounces the request again, so that it includes newer input. Attempts are numbered after
// all earlier ones, including a last one that the session may not know of.
func (d *decision) requeue(lastAttempt int) {
	r := d.Request
	r.FirstAttempt = max(lastAttempt, r.Attempt, r.FirstAttempt) + 1
	r.Through = ""
	d.enqueue()
}

func (d *decision) next() {
	if d.Closing != "" {
		d.end()
	}
	if d.Trigger == "" {
		return
	}
	d.reopen()
	d.startRequest()
}
