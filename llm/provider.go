package llm

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
)

// Provider is a model provider configured by an operator. Contexts refer to it by its ID.
type Provider struct {
	ID       string
	BaseURL  baseurl.URL // OpenAI-compatible endpoint, including the version
	KeyRef   string      // env:NAME or file:/path, sent only to BaseURL; empty: no key
	TextOnly bool        // attachments, including text files, become notes
	// Accepts are the media that are sent as content parts. Text files are sent as text, and other files
	// become notes. Nil: the media of the preset with this id and URL, else images.
	Accepts       []event.Media
	NoTools       bool             // no tools are offered, and earlier calls are sent as text
	ThinkTags     bool             // leading <think> tags contain reasoning, not the answer
	ContextWindow int              // in tokens; 0: unknown
	Price         *Price           // nil: unknown
	Models        map[string]Model // by name, with their own context window or price
}

// Model is the context window and the price of a model. A zero field means unknown; in [Provider.Models], the value
// of the provider.
type Model struct {
	ContextWindow int // in tokens
	Price         *Price
}

// Model returns the context window and the price of a model of the provider.
func (p Provider) Model(name string) Model {
	m := p.Models[name]
	m.ContextWindow = cmp.Or(m.ContextWindow, p.ContextWindow)
	m.Price = cmp.Or(m.Price, p.Price)
	return m
}

type preset struct {
	baseURL string
	keyRef  string   // the usual reference to the key, like env:OPENAI_API_KEY; empty for local servers
	accepts mediaSet // as content parts; audio only for an [audioModel]
	quirks  quirks
}

type entry struct {
	Provider
	quirks  quirks
	isLocal bool  // a preset of a local server, which requires permission, like base URLs in contexts
	problem error // why the URL is invalid, or nil
}

// newTable returns the presets, overridden by the default provider, then by the configured ones.
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
	isPreset := p.BaseURL.String() == known.baseURL
	e.quirks.maxCompletionTokens = known.quirks.maxCompletionTokens && isPreset
	e.quirks.fetchesPDFs = known.quirks.fetchesPDFs && isPreset
	return e
}

// audioModel matches models that accept audio. Providers that serve many models reject audio for the others.
var audioModel = regexp.MustCompile(`(?i)audio|gemini|gemma-?3n|omni|phi-4-multimodal|ultravox|voxtral`)

func (e entry) accepts(base baseurl.URL, model string) mediaSet {
	known := presets[e.ID]
	switch {
	case e.Accepts != nil:
		var accepted mediaSet
		for _, media := range e.Accepts {
			accepted |= 1 << media
		}
		return accepted
	case base.String() != known.baseURL:
		return images
	case !audioModel.MatchString(model):
		return known.accepts &^ audio
	}
	return known.accepts
}

// quirks are deviations of a provider from the OpenAI API.
type quirks struct {
	alternate      bool     // user and assistant must alternate, the user first; adjacent messages are merged
	noSystem       bool     // system text goes into the first user message
	textOnly       bool     // attachments become notes
	accepts        mediaSet // sent as content parts; other files except text become notes
	dataImagesOnly bool     // image URLs are not fetched
	fetchesPDFs    bool
	mistralParts   bool // PDFs are document_url parts, and audio is a string
	// toolsAsText: the provider rejects tool calls unless the request offers tools or contains
	// their provider state. Without either, calls and results are sent as text.
	toolsAsText bool
	tools       toolQuirks
	userLast    bool // the last message must be a user message or a result
	// needsReasoning: an answer between two user messages of which one calls tools needs reasoning_content.
	needsReasoning  bool
	noStreamOptions bool // stream_options is rejected; usage is always sent
	// maxCompletionTokens replaces max_tokens by max_completion_tokens. The value of a preset applies only
	// to the base URL of the preset; forModel sets it for reasoning models on every server.
	maxCompletionTokens bool
	refuses             []string // unsupported parameters
	randomSeed          bool     // the seed is sent as random_seed
	metadata            metadataUse
	schemaAsText        bool // there is no response format json_schema
	reasons             bool // the model reasons, and rejects sampling parameters unless reasoning is off
}

// metadataUse is whether labels are sent as metadata; by default no, since many servers reject it.
type metadataUse int

const (
	metadataTaken    metadataUse = iota + 1
	metadataIfStored             // only with the extra field "store":true
)

func (q quirks) fetches(media event.Media) bool {
	switch media {
	case event.MediaImage:
		return !q.dataImagesOnly
	case event.MediaPDF:
		return q.fetchesPDFs
	}
	return false
}

// presets follow the providers' documentation of OpenAI compatibility.
var presets = map[string]preset{
	"openai": {
		// https://platform.openai.com/docs/guides/pdf-files?api-mode=chat
		// https://platform.openai.com/docs/guides/audio
		baseURL: "https://api.openai.com/v1", keyRef: "env:OPENAI_API_KEY",
		accepts: images | pdfs | audio,
		// "The 'metadata' parameter is only allowed when 'store' is enabled" is a 400.
		// The description of a tool has at most 1,024 characters.
		quirks: quirks{maxCompletionTokens: true, metadata: metadataIfStored, tools: toolQuirks{maxDescription: 1024}},
	},
	"openrouter": {
		// PDFs work with every model; for some, OpenRouter converts them to text.
		// https://openrouter.ai/docs/guides/overview/multimodal/pdfs
		// https://openrouter.ai/docs/guides/overview/multimodal/audio
		baseURL: "https://openrouter.ai/api/v1", keyRef: "env:OPENROUTER_API_KEY",
		accepts: images | pdfs | audio,
		quirks:  quirks{fetchesPDFs: true, metadata: metadataTaken},
	},
	"groq": {
		baseURL: "https://api.groq.com/openai/v1", keyRef: "env:GROQ_API_KEY",
		accepts: images,
		quirks:  quirks{maxCompletionTokens: true},
	},
	"cerebras": {
		baseURL: "https://api.cerebras.ai/v1", keyRef: "env:CEREBRAS_API_KEY",
		// Penalties cause a 400.
		quirks: quirks{maxCompletionTokens: true, textOnly: true, refuses: penalties},
	},
	"together": {
		baseURL: "https://api.together.xyz/v1", keyRef: "env:TOGETHER_API_KEY",
		accepts: images,
		// parallel_tool_calls is not documented: https://docs.together.ai/reference/chat-completions-1
		quirks: quirks{tools: toolQuirks{noParallel: true}},
	},
	"mistral": {
		// Unknown fields, including stream_options, are a 422. The ids of tool calls have nine
		// characters, each a letter or a digit, no user message follows a result, and the last message is a user
		// message or a result. https://github.com/mistralai/mistral-common (validator.py)
		// https://docs.mistral.ai/capabilities/document_ai/document_qna
		// https://docs.mistral.ai/capabilities/audio
		baseURL: "https://api.mistral.ai/v1", keyRef: "env:MISTRAL_API_KEY",
		accepts: images | pdfs | audio,
		quirks: quirks{
			alternate: true, toolsAsText: true, noStreamOptions: true, fetchesPDFs: true, mistralParts: true,
			refuses: []string{parameterUser}, randomSeed: true, metadata: metadataTaken,
			userLast: true, tools: toolQuirks{shortIDs: true, noUserAfterResult: true},
		},
	},
	"deepseek": {
		// A tool call without the reasoning_content of its answer causes a 400, and so does a tool
		// choice other than auto and none while the model reasons, as it does by default. The last
		// message must be a user message or a result.
		// https://api-docs.deepseek.com/guides/tool_calls
		baseURL: "https://api.deepseek.com/v1", keyRef: "env:DEEPSEEK_API_KEY",
		// The response format json_schema causes a 400.
		quirks: quirks{
			alternate: true, textOnly: true, schemaAsText: true, toolsAsText: true, needsReasoning: true,
			userLast: true, tools: toolQuirks{needsState: true, noForcedChoice: true, noParallel: true},
		},
	},
	"gemini": {
		// A function call without its thought signature causes a 400, and so do a seed, penalties
		// and other unknown fields. No part for PDFs is documented. A function call follows a message
		// of the user or a result, and the last message is one of these. Names begin with a letter or
		// an underscore. https://ai.google.dev/gemini-api/docs/openai
		// https://ai.google.dev/gemini-api/docs/function-calling
		baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", keyRef: "env:GEMINI_API_KEY",
		accepts: images | audio,
		quirks: quirks{
			alternate: true, toolsAsText: true, refuses: append([]string{parameterSeed}, penalties...),
			userLast: true, tools: toolQuirks{needsState: true, noParallel: true, letterFirst: true, openAPISchema: true},
		},
	},
	"anthropic": {
		// Tool calls in a request that declares no tools cause a 400. The first message is that of
		// the user, and newer models reject an answer as the last one:
		// https://docs.anthropic.com/en/api/messages
		// The API ignores the response format, seed, penalties, reasoning effort, user, audio and
		// files: https://docs.anthropic.com/en/api/openai-sdk
		baseURL: "https://api.anthropic.com/v1", keyRef: "env:ANTHROPIC_API_KEY",
		accepts: images,
		quirks:  quirks{alternate: true, toolsAsText: true, schemaAsText: true, userLast: true, tools: toolQuirks{uniqueIDs: true}},
	},
	// There is no tool_choice: https://docs.ollama.com/api/openai-compatibility
	"ollama": {baseURL: "http://localhost:11434/v1", accepts: images, quirks: quirks{
		dataImagesOnly: true, tools: toolQuirks{noChoice: true, noParallel: true},
	}},
	// Many chat templates reject adjacent messages of one role.
	// https://docs.vllm.ai/en/latest/features/multimodal_inputs.html
	"vllm": {baseURL: "http://localhost:8000/v1", accepts: images | audio, quirks: quirks{alternate: true}},
	// https://github.com/ggml-org/llama.cpp/blob/master/docs/multimodal.md
	// tool_choice is auto, none or required, and cannot name a tool:
	// https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md
	"llamacpp": {baseURL: "http://localhost:8080/v1", accepts: images | audio, quirks: quirks{
		alternate: true, tools: toolQuirks{noNamedChoice: true},
	}},
}

// Presets returns the ids of the built-in providers, sorted.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// forModel adapts the quirks to a family of models, independent of the provider.
func (q quirks) forModel(model string) quirks {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if strings.HasPrefix(name, "gemma") {
		q.noSystem, q.alternate, q.toolsAsText = true, true, true
	}
	for _, reasoning := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if name == reasoning || strings.HasPrefix(name, reasoning+"-") || strings.HasPrefix(name, reasoning+".") {
			q.maxCompletionTokens, q.reasons = true, true
			// https://platform.openai.com/docs/guides/function-calling
			q.tools.noParallel = q.tools.noParallel || reasoning[0] == 'o'
		}
	}
	if strings.HasPrefix(name, "gemini-1") || strings.HasPrefix(name, "gemini-2") {
		q.tools.needsState = false // signatures are optional
	}
	return q
}
