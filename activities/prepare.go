package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// prepared is an attempt before it is sent. After an error, it contains what is known.
type prepared struct {
	dueAt, deadline       time.Time // of the attempt; zero before it was due
	session               reducer.Session
	providerID, modelName string
	model                 Model
	tools                 toolbox
	guard                 *guard // nil: no hooks
	request               ModelRequest
	omitted               int               // messages that the summary omits
	overflow              *reducer.Overflow // of a request that is too long; nil: it is not
	settle                func(event.Usage) // settles the reservations
}

// prepare makes the request, and runs the hooks that precede it.
func (g *generation) prepare(ctx context.Context, p *prepared) (err error) {
	if err = g.resolve(p); err != nil {
		return err
	}
	session, config := p.session, p.session.Reduced.Config
	if p.tools, err = g.offer(ctx, session); err != nil {
		return err
	}
	p.tools = p.tools.forModel(session.Reduced, p.providerID, p.modelName)
	p.request = ModelRequest{
		ContextName: g.in.ContextName,
		Messages:    session.Reduced.ForModel(reducer.MessagesOf(session), p.providerID, p.modelName),
		FirstToken:  milliseconds(config.FirstTokenMs),
		Stall:       milliseconds(config.StallMs),
		Settings:    reducer.SettingsOf(session),
		Repair:      g.in.Repair,
		Tools:       p.tools.definitions(),
	}
	if c := g.in.Compaction; c != nil {
		p.request.Settings = summarySettings(p.request.Settings, c.Window)
		if p.request.Messages, p.omitted, err = summaryMessages(ctx, p.model, p.request, c.Window); err != nil {
			return err
		}
	}
	if p.guard = g.newGuard(*p); p.guard != nil {
		err = p.guard.before(ctx)
		p.request.Messages, p.request.Settings = p.guard.request.Messages, p.guard.request.Settings
	}
	if err != nil {
		return err
	}
	if p.request.Settings, err = p.tools.choose(p.request.Settings); err != nil {
		return err
	}
	return p.model.Check(p.request)
}

func (g *generation) resolve(p *prepared) (err error) {
	config := p.session.Reduced.Config
	provider := config.Primary
	if g.in.Fallback {
		if config.Fallback == nil {
			return &ModelError{Kind: "configuration", Failure: event.FailureConfiguration, Err: fmt.Errorf("context %s has no fallback provider", g.in.ContextName)}
		}
		provider = *config.Fallback
	}
	p.providerID, p.modelName = provider.ProviderID, provider.Model
	if p.model, err = g.options.Models.Resolve(provider); err == nil {
		p.providerID, p.modelName = p.model.ID()
	}
	return err
}

// newGuard returns the hooks of an attempt; nil: none.
func (g *generation) newGuard(p prepared) *guard {
	request := hook.Request{
		ContextName: g.in.ContextName, RequestID: g.in.RequestID, Attempt: g.in.Attempt, ProviderID: p.providerID, Model: p.modelName,
		Messages: p.request.Messages, Settings: p.request.Settings, Tools: p.tools.list(), Repair: g.in.Repair,
	}
	if g.in.Compaction != nil {
		request.Purpose = event.PurposeCompaction
	}
	return newGuard(g.options.Hooks, request, p.session.Reduced.Config.Retry, g.metrics)
}

// measure sets the overflow of the request, or returns the reservations that it needs.
func (g *generation) measure(ctx context.Context, p *prepared) (r reservations, err error) {
	if p.overflow, err = overflow(ctx, *p, g.in.MayCompact); err != nil || p.overflow != nil {
		return r, err
	}
	return g.reservations(ctx, p)
}
