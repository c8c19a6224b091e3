package llm

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tomlfile"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
)

const maxContextWindow = 100_000_000 // tokens

const maxPrice = 1_000_000 // US dollars per million tokens

// providerTable is a table [providers.ID] of a file.
type providerTable struct {
	BaseURL   *string   `toml:"base_url"`
	Key       *string   `toml:"key"`
	TextOnly  bool      `toml:"text_only"`
	Tools     *bool     `toml:"tools"`
	Accepts   *[]string `toml:"accepts"`
	ThinkTags bool      `toml:"think_tags"`
	modelTable
	Models map[string]modelTable `toml:"models"`
}

// modelTable is a table [providers.ID.models.NAME], and part of [providers.ID].
type modelTable struct {
	ContextWindow *int        `toml:"context_window"`
	Price         *priceTable `toml:"price"`
}

type priceTable struct {
	Input       *float64 `toml:"input"`
	CachedInput *float64 `toml:"cached_input"`
	Output      *float64 `toml:"output"`
}

// Budget limits the usage per day of the requests with a label ([event.RequestSettings]).
type Budget struct {
	Label string
	Value string // empty: each value that has no budget of its own
	Limit event.Budget
}

type budgetTable struct {
	Label        string   `toml:"label"`
	Value        string   `toml:"value"`
	TokensPerDay *int64   `toml:"tokens_per_day"`
	USDPerDay    *float64 `toml:"usd_per_day"`
}

// ProviderFile is the content of a file of providers.
type ProviderFile struct {
	Providers    []Provider // sorted by id
	PriceVersion string     // of the prices, see [Options]
	Budgets      []Budget
}

// ReadProviders reads a file like examples/config/providers.toml. Errors name the file, the provider or budget, and the
// field.
func ReadProviders(name string) (ProviderFile, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return ProviderFile{}, err
	}
	file, err := parseProviders(name, string(data))
	if err == nil && len(file.Providers)+len(file.Budgets) == 0 {
		err = fmt.Errorf("%s: no provider and no budget (each is a table [providers.ID] or [[budgets]])", name)
	}
	return file, err
}

// ProviderKeys are the top-level keys of a file of providers.
var ProviderKeys = []string{"providers", "budgets", "price_version"}

// ParseProviders reads the [ProviderKeys] in the text of a configuration file. It ignores all others.
func ParseProviders(name, text string) (ProviderFile, error) {
	return parseProviders(name, text, ProviderKeys...)
}

// parseProviders reads the text of a file. With parts, other keys at the top level are allowed.
func parseProviders(name, text string, parts ...string) (out ProviderFile, err error) {
	var file struct {
		PriceVersion *string                  `toml:"price_version"`
		Providers    map[string]providerTable `toml:"providers"`
		Budgets      []budgetTable            `toml:"budgets"`
	}
	if err := tomlfile.Decode(name, text, &file, parts...); err != nil {
		return ProviderFile{}, err
	}
	if v := file.PriceVersion; v != nil {
		err := event.ValidateName("price_version", *v)
		if err == nil && len(*v) > event.MaxPriceVersionBytes {
			err = fmt.Errorf("price_version: %d bytes (at most %d)", len(*v), event.MaxPriceVersionBytes)
		}
		if err != nil {
			return ProviderFile{}, fmt.Errorf("%s: %w", name, err)
		}
		out.PriceVersion = *v
	}
	for _, id := range slices.Sorted(maps.Keys(file.Providers)) {
		p, err := file.Providers[id].provider(id)
		if err != nil {
			return ProviderFile{}, fmt.Errorf("%s: provider %q: %w", name, id, err)
		}
		out.Providers = append(out.Providers, p)
	}
	if out.Budgets, err = budgetsOf(file.Budgets); err != nil {
		return ProviderFile{}, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

func budgetsOf(tables []budgetTable) (budgets []Budget, err error) {
	for i, table := range tables {
		b, err := table.budget()
		if err == nil && slices.ContainsFunc(budgets, func(other Budget) bool { return other.Label == b.Label && other.Value == b.Value }) {
			err = fmt.Errorf("label %q has two budgets for the value %q (want one)", b.Label, b.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("budget %d: %w", i+1, err)
		}
		budgets = append(budgets, b)
	}
	return budgets, nil
}

func (table budgetTable) budget() (Budget, error) {
	b := Budget{Label: table.Label, Value: table.Value, Limit: event.Budget{Tokens: table.TokensPerDay}}
	if err := event.New(event.SetRequestSettings{Labels: map[string]string{b.Label: b.Value}}).Validate(); err != nil {
		var field *event.FieldError
		errors.As(err, &field)
		return b, fmt.Errorf("label: %s", field.Problem)
	}
	if usd := table.USDPerDay; usd != nil {
		micros, ok := event.MicrosOf(*usd)
		if !ok {
			return b, fmt.Errorf("usd_per_day: %v is out of range (0, or 0.000001 to %d US dollars)", *usd, event.MaxCostMicros/1_000_000)
		}
		b.Limit.CostMicros = &micros
	}
	if b.Limit.IsZero() {
		return b, errors.New("tokens_per_day: missing (want tokens_per_day, usd_per_day or both)")
	}
	if n := table.TokensPerDay; n != nil && (*n < 0 || *n > event.MaxBudgetTokens) {
		return b, fmt.Errorf("tokens_per_day: %d is out of range (0 to %d)", *n, int64(event.MaxBudgetTokens))
	}
	return b, nil
}

func (table providerTable) provider(id string) (Provider, error) {
	p := Provider{ID: id, TextOnly: table.TextOnly, ThinkTags: table.ThinkTags}
	if err := event.ValidateName("id", id); err != nil {
		return p, err
	}
	known, isPreset := presets[id]
	switch {
	case table.BaseURL != nil:
		var err error
		if p.BaseURL, err = baseurl.Parse(*table.BaseURL); err != nil {
			return p, fmt.Errorf("base_url: %w (want %s)", err, exampleURL)
		}
	case isPreset:
		// The key of a preset is only for its URL.
		p.BaseURL, p.KeyRef = baseurl.MustParse(known.baseURL), known.keyRef
	default:
		return p, fmt.Errorf("base_url: missing (want %s)", exampleURL)
	}
	if table.Key != nil {
		if event.ValidateAPIKeyRef(*table.Key) != nil {
			// The error omits the value, which may be the key.
			return p, errors.New("key: want env:NAME or file:/absolute/path (where the worker finds the key, never the key itself)")
		}
		p.KeyRef = *table.Key
	}
	p.NoTools = table.Tools != nil && !*table.Tools
	if table.Accepts != nil {
		var err error
		if p.Accepts, err = table.accepts(); err != nil {
			return p, fmt.Errorf("accepts: %w", err)
		}
	}
	own, err := table.model()
	if err != nil {
		return p, err
	}
	p.ContextWindow, p.Price = own.ContextWindow, own.Price
	for _, name := range slices.Sorted(maps.Keys(table.Models)) {
		m, err := table.Models[name].model()
		if err == nil {
			err = event.ValidateName("name", name)
		}
		if err != nil {
			return p, fmt.Errorf("model %q: %w", name, err)
		}
		if p.Models == nil {
			p.Models = map[string]Model{}
		}
		p.Models[name] = m
	}
	return p, nil
}

var partMedia = map[string]event.Media{"image": event.MediaImage, "pdf": event.MediaPDF, "audio": event.MediaAudio}

// accepts returns an empty slice for an empty list, because nil stands for the default.
func (table providerTable) accepts() ([]event.Media, error) {
	if table.TextOnly && len(*table.Accepts) > 0 {
		return nil, errors.New("set together with text_only = true (want only one of them)")
	}
	accepted := []event.Media{}
	for _, name := range *table.Accepts {
		media, ok := partMedia[name]
		if !ok {
			return nil, fmt.Errorf("unknown media %q (want image, pdf or audio)", name)
		}
		accepted = append(accepted, media)
	}
	return accepted, nil
}

func (table modelTable) model() (m Model, err error) {
	if n := table.ContextWindow; n != nil {
		if *n < 1 || *n > maxContextWindow {
			return m, fmt.Errorf("context_window: %d is out of range (1 to %d tokens)", *n, maxContextWindow)
		}
		m.ContextWindow = *n
	}
	if table.Price != nil {
		price, err := table.Price.price()
		if err != nil {
			return m, err
		}
		m.Price = &price
	}
	return m, nil
}

// Cached input defaults to the price of input.
func (table priceTable) price() (Price, error) {
	if table.CachedInput == nil {
		table.CachedInput = table.Input
	}
	for _, field := range []struct {
		name  string
		value *float64
	}{{"input", table.Input}, {"cached_input", table.CachedInput}, {"output", table.Output}} {
		if field.value == nil {
			return Price{}, fmt.Errorf("price.%s: missing (US dollars per million tokens)", field.name)
		}
		if v := *field.value; !(v == 0 || v >= 1.0/priceUnit && v <= maxPrice) {
			return Price{}, fmt.Errorf("price.%s: %v is out of range (0, or 0.000001 to %d US dollars per million tokens)", field.name, v, maxPrice)
		}
	}
	return Price{Input: *table.Input, CachedInput: *table.CachedInput, Output: *table.Output}, nil
}
