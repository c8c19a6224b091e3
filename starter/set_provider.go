package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetProviderCommand(o *setOptions) *cobra.Command {
	var body event.SetProviderConfig
	command := &cobra.Command{
		Use:   "provider -n NAME --provider ID --model MODEL | --default [flags]",
		Short: "Set the provider and the model, or the fallback",
		Long: `Set the provider and the model of a context, or, with --fallback, those that are
used after the primary ones reject a request or run out of retries. The command
sets all fields of the provider; omitted flags return to their defaults.

The operator of the worker configures the available providers, base URLs and
keys, see "worker --help", --providers and --allow-base-url. Requests to any
other provider fail.

With --default, the context returns to the default provider of the worker or,
with --fallback, to no fallback.`,
		Example: `  starter set provider -n demo --provider openai --model gpt-4o
  starter set provider -n demo --provider local --model llama3.2 --base-url http://127.0.0.1:11434/v1 --fallback`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := runSet(command.Context(), *o, body); err != nil {
				return err
			}
			if !body.UseDefault && body.BaseURL == "" && !slices.Contains(presets, body.ProviderID) {
				o.note("requests fail unless the worker has a provider %q in its --providers file; without one it has %s",
					body.ProviderID, strings.Join(presets, ", "))
			}
			return nil
		},
	}
	providerFlags(command, &body, "required")
	flags := command.Flags()
	floatField(flags, &body.Temperature, "temperature", "",
		"sampling temperature, a `NUMBER` from 0 to 2 (default: the provider's)")
	intField(flags, &body.MaxTokens, "max-tokens", "", "maximum length of an answer in `TOKENS`, 1 to 10,000,000 (default: the provider's)")
	flags.BoolVar(&body.TextOnly, "text-only", false, "the model accepts no images or files; replace them by a note")
	flags.BoolVar(&body.UseDefault, "default", false, "return to the default provider of the worker, or, with --fallback, to no fallback")
	flags.BoolVar(&body.AsFallback, "fallback", false, "set the fallback and leave the primary provider as it is")
	return command
}

// presets are the ids of llm.Presets, which clients do not import.
var presets = []string{
	"anthropic", "cerebras", "deepseek", "gemini", "groq", "llamacpp", "mistral", "ollama", "openai", "openrouter", "together", "vllm",
}

// providerFlags adds the flags of a provider. The help says when those of the provider and the model are required.
func providerFlags(command *cobra.Command, body *event.SetProviderConfig, required string) {
	flags := command.Flags()
	flags.StringVar(&body.ProviderID, "provider", "",
		"`ID` of the provider: a preset ("+strings.Join(presets, ", ")+"), a provider configured on the worker, or any name with --base-url; "+required)
	flags.StringVar(&body.Model, "model", "", "`MODEL` name at the provider; "+required)
	flags.StringVar(&body.APIKeyRef, "api-key-ref", "",
		"reference to the key on the worker, `env:NAME` or file:/absolute/path, never the key itself; the operator must have configured it for the URL (default: the provider's)")
	flags.StringVar(&body.BaseURL, "base-url", "",
		"http or https `URL` of an OpenAI-compatible server up to the version, like https://api.openai.com/v1; the operator must configure or allow it; a URL that is only allowed gets no key (default: the provider's)")
}
