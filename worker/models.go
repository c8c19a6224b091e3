package main

import (
	"cmp"
	"fmt"
	"net/url"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// modelsFromEnv are the models of contexts that chose none. A URL that is none
// is wrong usage, rather than the failure of every request.
func modelsFromEnv(getenv func(string) string) (llm.Defaults, error) {
	d := llm.DefaultsFromEnv(getenv)
	if d.BaseURL == "" {
		return d, nil
	}
	if u, err := url.Parse(d.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return d, usageError{fmt.Errorf("OPENAI_BASE_URL=%q: want an http or https URL like https://api.openai.com/v1",
			event.Redact(d.BaseURL, 0))}
	}
	return d, nil
}

// noModel is the model in the ready line of a worker that has none for contexts
// that chose none.
const noModel = "none"

// model is the name of the model of contexts that chose none.
func (p places) model() string {
	return cmp.Or(p.models.Model, reducer.Initial().Config.Primary.Model)
}

// unanswerable is why contexts that chose no model cannot be answered; nil when
// they can.
func (a *app) unanswerable(at places) error {
	_, err := llm.New(llm.Options{Defaults: at.models, Getenv: a.getenv}).Resolve(reducer.Initial().Config.Primary)
	return err
}

// unanswerableHelp says what to do about it.
const unanswerableHelp = "contexts without a provider of their own cannot be answered until OPENAI_API_KEY or OPENAI_BASE_URL is set"
