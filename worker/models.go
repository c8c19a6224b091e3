package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/activities"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Invalid providers are usage errors at startup rather than failures of every request.
func (a *app) modelOptions() (o llm.Options, budgets []activities.LabelBudget, err error) {
	s := a.settings
	o = llm.Options{Getenv: a.getenv, Defaults: llm.DefaultsFromEnv(a.getenv), AllowLoopback: s.dev}
	if url := o.Defaults.BaseURL; url != "" {
		if _, err := baseurl.Parse(url); err != nil {
			// The error omits the URL, which may contain a secret.
			return o, nil, exit.UsageError{Err: fmt.Errorf("OPENAI_BASE_URL: %w (want an http or https URL like https://api.openai.com/v1)", err)}
		}
	}
	for _, raw := range s.allowBaseURLs {
		allowed, err := baseurl.Parse(raw)
		if err != nil {
			return o, nil, exit.UsageError{Err: fmt.Errorf("--allow-base-url: %w (want an http or https URL like http://10.0.0.5:8000/v1)", err)}
		}
		o.AllowBaseURLs = append(o.AllowBaseURLs, allowed)
	}
	if s.providersFile == "" {
		return o, nil, nil
	}
	file, err := llm.ReadProviders(s.providersFile)
	if err != nil {
		return o, nil, exit.UsageError{Err: fmt.Errorf("--providers: %w", err)}
	}
	o.Providers, o.PriceVersion = file.Providers, file.PriceVersion
	for _, b := range file.Budgets {
		budgets = append(budgets, activities.LabelBudget(b))
	}
	i := slices.IndexFunc(o.Providers, func(p llm.Provider) bool { return p.ID == o.Defaults.ProviderID })
	if i < 0 {
		return o, budgets, nil
	}
	if url := o.Defaults.BaseURL; url != "" && baseurl.MustParse(url) != o.Providers[i].BaseURL {
		return o, nil, exit.UsageError{Err: fmt.Errorf("--providers: %s: provider %q: base_url: OPENAI_BASE_URL names another URL (unset one of them)",
			s.providersFile, o.Defaults.ProviderID)}
	}
	o.Defaults.BaseURL, o.Defaults.APIKeyRef = o.Providers[i].BaseURL.String(), o.Providers[i].KeyRef
	return o, budgets, nil
}

const noModel = "none"

func (p endpoints) model() string {
	return cmp.Or(p.models.Defaults.Model, reducer.Initial().Config.Primary.Model)
}

// unanswerable returns nil if contexts without a provider of their own get answers.
func (p endpoints) unanswerable() error {
	_, err := llm.New(p.models).Resolve(reducer.Initial().Config.Primary)
	return err
}

const unanswerableHelp = "contexts without a provider of their own cannot be answered until OPENAI_API_KEY or OPENAI_BASE_URL is set, or --providers configures openai"
