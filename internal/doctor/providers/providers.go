// Package providers checks the model providers of a worker. It is separate from package doctor so that
// clients do not depend on the model adapter.
package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/doctor"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

const (
	callTimeout = 20 * time.Second
	// callTokens is the smallest output that all models accept.
	callTokens = 16
)

// Checks returns a check of the provider of contexts without one of their own, and of each provider in
// the file of --providers: its configuration and, if call is set, a request to it.
func Checks(options llm.Options, call bool) []doctor.Check {
	adapter := llm.New(options)
	primary := reducer.Initial().Config.Primary
	checks := []doctor.Check{{
		Name:    "provider.default",
		Why:     "contexts without a provider of their own use it",
		Timeout: callTimeout,
		Run:     func(ctx context.Context) doctor.Result { return check(ctx, adapter, primary, call) },
	}}
	for _, p := range options.Providers {
		if p.ID == options.Defaults.ProviderID {
			continue // provider.default checks it, with the model that the environment names
		}
		config := reducer.ProviderConfig{ProviderID: p.ID}
		for _, model := range slices.Sorted(maps.Keys(p.Models))[:min(1, len(p.Models))] {
			config.Model = model
		}
		checks = append(checks, doctor.Check{
			Name:    "provider." + p.ID,
			Why:     "contexts that name it use it",
			Timeout: callTimeout,
			Run:     func(ctx context.Context) doctor.Result { return check(ctx, adapter, config, call) },
		})
	}
	return checks
}

func check(ctx context.Context, adapter *llm.Adapter, config reducer.ProviderConfig, call bool) doctor.Result {
	target, err := adapter.Resolve(config)
	if err != nil {
		severity := doctor.Error
		if config.IsDefault {
			severity = doctor.Warning // contexts may all have a provider of their own
		}
		return doctor.Result{
			Severity: severity, Measured: message(err),
			Fix: "set the key or the base URL for the worker, in its environment or in the file of --providers",
		}
	}
	place := fmt.Sprintf("%s at %s", target.ProviderID, target.BaseURL)
	switch {
	case !call:
		return doctor.Result{Severity: doctor.OK, Measured: place + ": configured; no request was sent (--call sends one)"}
	case target.Model == "":
		return doctor.Result{Severity: doctor.Skipped, Measured: place + ": configured; no request was sent, because the file of --providers names no model of it"}
	}
	return request(ctx, target, place)
}

func request(ctx context.Context, target *llm.Target, place string) doctor.Result {
	tokens := callTokens
	target.Settings = event.RequestSettings{MaxTokens: &tokens}
	began := time.Now()
	answer, err := target.Stream(ctx, []reducer.Message{{Role: reducer.RoleUser, Content: "ping"}}, nil)
	var failed *llm.Error
	if err == nil || errors.As(err, &failed) && hasAnswered(failed) {
		measured := fmt.Sprintf("%s: %s answered in %v", place, target.Model, time.Since(began).Round(time.Millisecond))
		if len(answer.Quirks) > 0 {
			measured += "; quirks: " + strings.Join(answer.Quirks, " ")
		}
		return doctor.Result{Severity: doctor.OK, Measured: measured}
	}
	result := doctor.Result{
		Severity: doctor.Error, Measured: fmt.Sprintf("%s: %s: %s", place, target.Model, message(err)),
		Fix: "see the status page of the provider, and try again",
	}
	if failed == nil {
		return result
	}
	if failed.Retryable() {
		result.Severity = doctor.Warning
	}
	result.Fix = cmp.Or(fixes[failed.Kind], result.Fix)
	return result
}

// hasAnswered reports whether the provider accepted the request: an answer of a few tokens may be
// incomplete or filtered.
func hasAnswered(e *llm.Error) bool {
	return e.Kind == llm.KindInvalidAnswer || e.Kind == llm.KindContentFilter
}

var fixes = map[llm.Kind]string{
	llm.KindUnauthorized: "replace the key of the provider, or grant it access to the model",
	llm.KindNotFound:     "correct the model (OPENAI_MODEL, or the models in the file of --providers), or the base URL",
	llm.KindQuota:        "check the balance and the limits of the account",
	llm.KindRateLimited:  "wait, or raise the rate limits of the account",
	llm.KindConnection:   "check the base URL, the network, and HTTPS_PROXY of the worker",
	llm.KindBadRequest:   "choose a model that answers chat completions",
}

// message is the text of an error, which contains no secrets if it is an [llm.Error].
func message(err error) string { return event.RedactOutput(err.Error(), 600) }
