package main

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/title"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// checkTitles returns a usage error for a model that cannot write titles.
func (a *app) checkTitles(at endpoints) error {
	if a.settings.Titles == "" {
		return nil
	}
	providerID, model, _ := strings.Cut(a.settings.Titles, "/")
	var err error
	switch checks := slices.IndexFunc(at.hooks, func(h hook.Hook) bool { return h.Before != nil || h.After != nil }); {
	case providerID == "" || model == "":
		err = fmt.Errorf("%q: want PROVIDER/MODEL, like openai/gpt-4o-mini", a.settings.Titles)
	case checks >= 0:
		err = fmt.Errorf("cannot be used with hook %s: no hook checks the requests for titles", at.hooks[checks].Name)
	default:
		_, err = llm.New(at.models).Resolve(reducer.ProviderConfig{ProviderID: providerID, Model: model})
	}
	if err != nil {
		return exit.UsageError{Err: fmt.Errorf("%s: %w", a.config.Label("titles"), err)}
	}
	return nil
}

// withTitles adds the hook of --titles.
func (a *app) withTitles(at endpoints, r *runningWorker, log *zap.Logger) []hook.Hook {
	if a.settings.Titles == "" {
		return at.hooks
	}
	providerID, model, _ := strings.Cut(a.settings.Titles, "/")
	return append(slices.Clip(at.hooks), title.New(title.Options{
		Client: r.conn.Client(), Models: r.models, ProviderID: providerID, Model: model, Meters: r.conn.Meters,
		Logger: logging.Structured(log, title.Name, zap.InfoLevel),
	}))
}
