package main

import (
	"context"
	"reflect"
	"slices"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/llm"
)

// reloadable are the keys that reload applies.
var reloadable = []string{"worker.log_level", "worker.providers", "worker.allow_base_url", "providers", "price_version"}

// reloadOnHangup reloads the configuration of a worker on each SIGHUP. A reload waits until the returned
// function has been called.
func (a *app) reloadOnHangup(life context.Context, end context.CancelCauseFunc) (started func(endpoints, *runningWorker, *zap.Logger)) {
	ready := make(chan struct{})
	var reload func()
	config.OnHangup(life, func() {
		select {
		case <-ready:
			reload()
		case <-life.Done():
		}
	}, func() { end(errStopped) })
	return func(at endpoints, r *runningWorker, log *zap.Logger) {
		reload = func() { a.reload(at, r, log) }
		close(ready)
	}
}

// reload reads the configuration again, and applies the providers and the log level. An attempt that
// has begun keeps its provider; retries and later steps use the new one. If the configuration is invalid, nothing changes.
func (a *app) reload(at endpoints, r *runningWorker, log *zap.Logger) {
	next, options, changed, err := a.reread(at)
	if err != nil {
		log.Error("the configuration was not reloaded and stays as it was", zap.Error(err))
		return
	}
	r.models.Configure(options)
	r.providers.Store(&options)
	// The lower of the two levels applies to this line, so that it appears if either includes info.
	level := next.settings.LogLevel.Zap()
	a.level.SetLevel(min(a.level.Level(), level))
	var ids []string
	for _, p := range options.Providers {
		ids = append(ids, p.ID)
	}
	log.Info("reloaded the configuration", zap.Strings("providers", ids), zap.Stringer("log_level", level))
	a.level.SetLevel(level)
	if len(changed) > 0 {
		log.Warn("some changed settings take effect after a restart", zap.Strings("settings", changed))
	}
	at.models = options
	a.warnAboutModels(at, log)
}

// reread returns the current configuration, and the changed keys that require a restart.
func (a *app) reread(at endpoints) (next *app, options llm.Options, changed []string, err error) {
	next = &app{getenv: a.getenv, settings: settings{dev: a.settings.dev, command: a.settings.command}}
	if next.config, err = a.config.Reload(a.getenv, next.settings.tables()...); err != nil {
		return nil, options, nil, err
	}
	if err := next.settings.validate(next.config); err != nil {
		return nil, options, nil, err
	}
	options, budgets, err := next.modelOptions()
	if err != nil {
		return nil, options, nil, err
	}
	if at.modelURL != "" && !hasModel(options) {
		options.Defaults = standIn(at.modelURL)
	}
	for _, key := range a.config.Differences(next.config) {
		if !slices.Contains(reloadable, key) && key != keyBudgets {
			changed = append(changed, key)
		}
	}
	if !reflect.DeepEqual(budgets, at.budgets) {
		changed = append(changed, keyBudgets)
	}
	return next, options, changed, nil
}

const keyBudgets = "budgets"
