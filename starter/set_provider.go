package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func newSetProviderCommand(o *setOptions) *cobra.Command {
	var body event.SetProviderConfig
	var temperature float64
	var maxTokens int
	command := &cobra.Command{
		Use:   "provider -n NAME --provider ID --model MODEL [flags]",
		Short: "Choose the provider and the model, or the fallback",
		Long: `Choose the provider and the model that answer, or, with --fallback, those that
take over when the first ones refuse or are exhausted. Everything about the
provider is set at once: what is left out goes back to its default.

Which providers, base URLs and keys there are is up to the worker's operator, see
worker --providers and --allow-base-url. A request to another one fails.

` + exitReference,
		Example: `  starter set provider -n demo --provider openai --model gpt-4o
  starter set provider -n demo --provider local --model llama3.2 --base-url http://127.0.0.1:11434/v1 --fallback`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if command.Flags().Changed("temperature") {
				body.Temperature = &temperature
			}
			if command.Flags().Changed("max-tokens") {
				body.MaxTokens = &maxTokens
			}
			return runSet(command.Context(), *o, body)
		},
	}
	providerFlags(command, &body)
	flags := command.Flags()
	flags.Float64Var(&temperature, "temperature", 0,
		"`NUMBER` from 0 (always the likeliest word) to 2 (default: the provider's)")
	flags.IntVar(&maxTokens, "max-tokens", 0, "longest answer in `TOKENS`, at least 1 (default: the provider's)")
	flags.BoolVar(&body.TextOnly, "text-only", false, "the model takes no images or files; it is told of them by a note")
	flags.BoolVar(&body.AsFallback, "fallback", false, "set the fallback and leave the primary provider as it is")
	return command
}

// providerFlags adds the flags that say who answers.
func providerFlags(command *cobra.Command, body *event.SetProviderConfig) {
	flags := command.Flags()
	flags.StringVar(&body.ProviderID, "provider", "",
		"`ID` of the provider: a preset like openai, one that the worker configures, or any name together with --base-url; required")
	flags.StringVar(&body.Model, "model", "", "the `MODEL`, as the provider calls it; required")
	flags.StringVar(&body.APIKeyRef, "api-key-ref", "",
		"where the worker finds the key, `env:NAME` or file:/absolute/path; never the key itself; one that its operator ties to the URL (default: the provider's)")
	flags.StringVar(&body.BaseURL, "base-url", "",
		"http or https `URL` of an OpenAI-compatible server up to the version, like https://api.openai.com/v1; one that the worker's operator allows, without a key (default: the provider's)")
}
