package llm

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
)

// Provider is a model provider configured by an operator. Contexts refer to it by its ID.
type Provider struct {
	ID string
	// BaseURL is the OpenAI-compatible endpoint, up to and including the
	// version.
	BaseURL baseurl.URL
	// KeyRef is the place of the key for BaseURL, env:NAME or file:/path. The key is sent only
	// to BaseURL. Empty: no key.
	KeyRef string
	// TextOnly marks models without vision: attachments become notes.
	TextOnly bool
	// ContextWindow is the context window in tokens; 0: unknown.
	ContextWindow int
	// Price is nil if unknown.
	Price *Price
}

// Price in US dollars per million tokens.
type Price struct {
	Input, CachedInput, Output float64
}

// preset is a built-in provider.
type preset struct {
	// baseURL is the OpenAI-compatible endpoint, up to and including the
	// version.
	baseURL string
	// keyRef is the conventional place of the key; empty for local servers, which require none.
	keyRef string
	quirks quirks
}

// entry is a row of the provider table of an [Adapter].
type entry struct {
	Provider
	quirks quirks
	// isLocal marks presets of local servers. Like base URLs in contexts, they require
	// permission.
	isLocal bool
	// problem is why the URL is invalid; nil if it is valid.
	problem error
}

// newTable returns the presets, overridden by the default provider and then by the configured
// ones.
func newTable(defaults Defaults, configured []Provider) map[string]entry {
	table := map[string]entry{}
	for id, known := range presets {
		base := baseurl.MustParse(known.baseURL)
		table[id] = entry{
			Provider: Provider{ID: id, BaseURL: base, KeyRef: known.keyRef},
			quirks:   known.quirks, isLocal: base.IsLoopback(),
		}
	}
	if defaults.BaseURL != "" {
		base, err := baseurl.Parse(defaults.BaseURL)
		table[defaults.ProviderID] = newEntry(Provider{ID: defaults.ProviderID, BaseURL: base, KeyRef: defaults.APIKeyRef}, err)
	} else if known, ok := table[defaults.ProviderID]; ok && defaults.APIKeyRef != "" {
		known.KeyRef, known.isLocal = defaults.APIKeyRef, false
		table[defaults.ProviderID] = known
	}
	for _, p := range configured {
		table[p.ID] = newEntry(p, nil)
	}
	return table
}

func newEntry(p Provider, problem error) entry {
	known := presets[p.ID]
	e := entry{Provider: p, quirks: known.quirks, problem: problem}
	e.quirks.maxCompletionTokens = known.quirks.maxCompletionTokens && p.BaseURL.String() == known.baseURL
	return e
}

// quirks are deviations of a provider from the OpenAI API.
type quirks struct {
	// alternate: user and assistant messages must alternate, starting with the user; adjacent
	// messages of one role are merged.
	alternate bool
	// noSystem: there is no system role; its text goes into the first user message.
	noSystem bool
	// textOnly: attachments become notes.
	textOnly bool
	// dataImagesOnly: the provider does not fetch image URLs.
	dataImagesOnly bool
	// toolsAsText: the provider rejects tool calls unless the request declares tools or
	// contains signatures, so calls and results are sent as text.
	toolsAsText bool
	// noStreamOptions: stream_options is rejected; usage is always sent.
	noStreamOptions bool
	// maxCompletionTokens: the limit is max_completion_tokens instead of max_tokens. This holds
	// only for the provider's own URL; other servers used under its name usually know
	// max_tokens.
	maxCompletionTokens bool
	// refuses are parameters that the provider answers with an error, or that it does not have.
	refuses refusals
	// randomSeed: the seed is random_seed.
	randomSeed bool
	// metadata says whether labels are sent as metadata.
	metadata metadataUse
	// schemaAsText: there is no response format json_schema, so the schema is sent as text.
	schemaAsText bool
	// reasons: the model answers after reasoning, and takes parameters of sampling only without.
	reasons bool
}

// refusals is a set of parameters. It is comparable.
type refusals uint

const (
	refusesSeed refusals = 1 << iota
	refusesPenalties
	refusesUser
)

// names returns the names of the parameters.
func (r refusals) names() (names []string) {
	if r&refusesSeed != 0 {
		names = append(names, parameterSeed)
	}
	if r&refusesPenalties != 0 {
		names = append(names, parameterFrequencyPenalty, parameterPresencePenalty)
	}
	if r&refusesUser != 0 {
		names = append(names, parameterUser)
	}
	return names
}

// metadataUse says whether a provider takes metadata. The default is no: many servers refuse it.
type metadataUse int

const (
	metadataTaken metadataUse = iota + 1
	// metadataIfStored: only with the extra field "store":true.
	metadataIfStored
)

// presets are the built-in providers. The endpoints are from the providers' documentation of
// OpenAI compatibility.
var presets = map[string]preset{
	"openai": {
		baseURL: "https://api.openai.com/v1", keyRef: "env:OPENAI_API_KEY",
		// "The 'metadata' parameter is only allowed when 'store' is enabled" is a 400.
		quirks: quirks{maxCompletionTokens: true, metadata: metadataIfStored},
	},
	"openrouter": {
		baseURL: "https://openrouter.ai/api/v1", keyRef: "env:OPENROUTER_API_KEY",
		quirks: quirks{metadata: metadataTaken},
	},
	"groq": {
		baseURL: "https://api.groq.com/openai/v1", keyRef: "env:GROQ_API_KEY",
		quirks: quirks{maxCompletionTokens: true},
	},
	"cerebras": {
		baseURL: "https://api.cerebras.ai/v1", keyRef: "env:CEREBRAS_API_KEY",
		// Penalties are a 400.
		quirks: quirks{maxCompletionTokens: true, textOnly: true, refuses: refusesPenalties},
	},
	"together": {baseURL: "https://api.together.xyz/v1", keyRef: "env:TOGETHER_API_KEY"},
	"mistral": {
		// Unknown fields, including stream_options, are a 422. Tool call ids must have nine
		// characters, and no user message may follow a tool result.
		baseURL: "https://api.mistral.ai/v1", keyRef: "env:MISTRAL_API_KEY",
		quirks: quirks{
			alternate: true, toolsAsText: true, noStreamOptions: true,
			refuses: refusesUser, randomSeed: true, metadata: metadataTaken,
		},
	},
	"deepseek": {
		baseURL: "https://api.deepseek.com/v1", keyRef: "env:DEEPSEEK_API_KEY",
		// The response format json_schema is a 400.
		quirks: quirks{alternate: true, textOnly: true, schemaAsText: true},
	},
	"gemini": {
		// A function call without its thought signature is a 400, and so are a seed and penalties.
		baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", keyRef: "env:GEMINI_API_KEY",
		quirks: quirks{toolsAsText: true, refuses: refusesSeed | refusesPenalties},
	},
	"anthropic": {
		// Tool calls in a request that declares no tools are a 400. The response format is ignored,
		// as are a seed, penalties, a reasoning effort and a user.
		baseURL: "https://api.anthropic.com/v1", keyRef: "env:ANTHROPIC_API_KEY",
		quirks: quirks{toolsAsText: true, schemaAsText: true},
	},
	"ollama": {baseURL: "http://localhost:11434/v1", quirks: quirks{dataImagesOnly: true}},
	// These apply the chat template of the model, and many templates reject adjacent messages
	// of one role.
	"vllm":     {baseURL: "http://localhost:8000/v1", quirks: quirks{alternate: true}},
	"llamacpp": {baseURL: "http://localhost:8080/v1", quirks: quirks{alternate: true}},
}

// Presets returns the ids of the built-in providers, sorted.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// forModel adds the quirks of a family of models, independent of the provider.
func (q quirks) forModel(model string) quirks {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if strings.HasPrefix(name, "gemma") {
		q.noSystem, q.alternate, q.toolsAsText = true, true, true
	}
	for _, reasoning := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if name == reasoning || strings.HasPrefix(name, reasoning+"-") || strings.HasPrefix(name, reasoning+".") {
			q.maxCompletionTokens, q.reasons = true, true
		}
	}
	return q
}
