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
	for _, raw := range s.AllowBaseURLs {
		allowed, err := baseurl.Parse(raw)
		if err != nil {
			return o, nil, exit.UsageError{Err: fmt.Errorf("%s: %w (want an http or https URL like http://10.0.0.5:8000/v1)", a.config.Label("allow-base-url"), err)}
		}
		o.AllowBaseURLs = append(o.AllowBaseURLs, allowed)
	}
	file, from, err := a.providerFile()
	if err != nil {
		return o, nil, exit.UsageError{Err: err}
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
		return o, nil, exit.UsageError{Err: fmt.Errorf("%s: provider %q: base_url: OPENAI_BASE_URL names another URL (unset one of them)",
			from, o.Defaults.ProviderID)}
	}
	o.Defaults.BaseURL, o.Defaults.APIKeyRef = o.Providers[i].BaseURL.String(), o.Providers[i].KeyRef
	return o, budgets, nil
}

// providerFile reads the providers from the file of --providers, else from the configuration file, and
// returns the name of the file for errors.
func (a *app) providerFile() (file llm.ProviderFile, from string, err error) {
	path, text := a.config.Text()
	if err := a.config.CheckOnce("providers", llm.ProviderKeys...); err != nil {
		return file, "", err
	}
	if name := a.settings.ProvidersFile; name != "" {
		from = a.config.Label("providers")
		if file, err = llm.ReadProviders(name); err != nil {
			err = fmt.Errorf("%s: %w", from, err)
		}
		return file, from + ": " + name, err
	}
	file, err = llm.ParseProviders(path, text)
	return file, path, err
}

const noModel = "none"

// hasModel reports whether there is a default model, for contexts without a provider of their own.
func hasModel(o llm.Options) bool { return o.Defaults.APIKeyRef != "" || o.Defaults.BaseURL != "" }

func (p endpoints) model() string {
	return cmp.Or(p.models.Defaults.Model, reducer.Initial().Config.Primary.Model)
}

// unanswerable returns nil if contexts without a provider of their own get answers.
func (p endpoints) unanswerable() error {
	_, err := llm.New(p.models).Resolve(reducer.Initial().Config.Primary)
	return err
}

const unanswerableHelp = "contexts without a provider of their own cannot be answered until OPENAI_API_KEY or OPENAI_BASE_URL is set, or --providers or --config configures the provider openai"
