package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/retention"
)

// retentionRules reads the configuration file. An invalid rule is a usage error at startup.
func (a *app) retentionRules() ([]retention.Rule, error) {
	rules, err := retention.Parse(a.config.Text())
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	return rules, nil
}

// startRetention applies the rules until ctx ends or the returned function is called.
func (r *runningWorker) startRetention(ctx context.Context, at endpoints, log *zap.Logger) (stop func()) {
	if len(at.retention) == 0 {
		return func() {}
	}
	sweeper := &retention.Sweeper{
		Rules: at.retention, Log: logging.Structured(log, "", zap.InfoLevel),
		Contexts: retention.NewContexts(r.conn.Temporal, r.conn.Namespace, r.conn.Archive, r.conn.Client()),
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		sweeper.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func ruleNames(rules []retention.Rule) (names []string) {
	for _, r := range rules {
		names = append(names, r.String())
	}
	return names
}

// retentionChecks returns a check that shows the rules; none without rules.
func retentionChecks(rules []retention.Rule) []doctor.Check {
	if len(rules) == 0 {
		return nil
	}
	return []doctor.Check{{
		Name: "retention", Why: "the worker deletes contexts by these rules, of which the first that matches decides",
		Run: func(context.Context) doctor.Result {
			result := doctor.Result{Severity: doctor.OK, Measured: strings.Join(ruleNames(rules), "; ")}
			var short []string
			for i, r := range rules {
				if r.After < retention.ShortRule {
					short = append(short, strconv.Itoa(i+1))
				}
			}
			if len(short) > 0 {
				noun := "rule"
				if len(short) > 1 {
					noun = "rules"
				}
				result.Severity, result.Fix = doctor.Warning, fmt.Sprintf("set after of %s %s to a day or more, unless contexts are only needed for so short",
					noun, strings.Join(short, " and "))
			}
			return result
		},
	}}
}
