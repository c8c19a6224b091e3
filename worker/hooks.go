package main

import (
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// hooks returns the webhooks. An invalid one is a usage error at startup. Workflow tasks need their
// names only.
func (a *app) hooks() ([]hook.Hook, error) {
	return a.readHooks(a.settings.part() == contexts.OnlyWorkflows)
}

// readHooks reads the file of --hooks, else the configuration file.
func (a *app) readHooks(withoutCalls bool) (hooks []hook.Hook, err error) {
	options := webhook.Options{Getenv: a.getenv, AllowLoopback: a.settings.dev, WithoutCalls: withoutCalls}
	err = a.config.CheckOnce("hooks", webhook.Key)
	switch {
	case err != nil:
	case a.settings.HooksFile == "":
		path, text := a.config.Text()
		hooks, err = webhook.Parse(path, text, options)
	default:
		if hooks, err = webhook.ReadFile(a.settings.HooksFile, options); err != nil {
			err = fmt.Errorf("%s: %w", a.config.Label("hooks"), err)
		}
	}
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	return hooks, nil
}
