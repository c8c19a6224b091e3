package main

import (
	"fmt"

	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// hooks returns the webhooks of --hooks. An invalid one is a usage error at startup. Workflow tasks
// need their names only.
func (a *app) hooks() ([]hook.Hook, error) {
	if a.settings.hooksFile == "" {
		return nil, nil
	}
	hooks, err := webhook.ReadFile(a.settings.hooksFile, webhook.Options{
		Getenv: a.getenv, AllowLoopback: a.settings.dev, WithoutCalls: a.settings.only == contexts.OnlyWorkflows,
	})
	if err != nil {
		return nil, exit.UsageError{Err: fmt.Errorf("--hooks: %w", err)}
	}
	return hooks, nil
}
