package llm

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/llm/baseurl"
)

// maxContextWindow is the maximum context window in tokens.
const maxContextWindow = 100_000_000

// maxPrice is the maximum price in US dollars per million tokens.
const maxPrice = 1_000_000

// providerTable is a table [providers.ID] of a file.
type providerTable struct {
	BaseURL       *string     `toml:"base_url"`
	Key           *string     `toml:"key"`
	TextOnly      bool        `toml:"text_only"`
	Accepts       *[]string   `toml:"accepts"`
	ThinkTags     bool        `toml:"think_tags"`
	ContextWindow *int        `toml:"context_window"`
	Price         *priceTable `toml:"price"`
}

type priceTable struct {
	Input       *float64 `toml:"input"`
	CachedInput *float64 `toml:"cached_input"`
	Output      *float64 `toml:"output"`
}

// providerKeys are the keys of a file by the depth of their table, without provider ids.
var providerKeys = [][]string{
	1: {"providers"},
	3: {"base_url", "key", "text_only", "accepts", "think_tags", "context_window", "price"},
	4: {"input", "cached_input", "output"},
}

// ReadProviders reads the providers of a TOML file, sorted by id; see providers.example.toml.
// Errors name the file, the provider and the field.
func ReadProviders(name string) ([]Provider, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	providers, err := parseProviders(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return providers, nil
}

func parseProviders(text string) ([]Provider, error) {
	var file struct {
		Providers map[string]providerTable `toml:"providers"`
	}
	meta, err := toml.Decode(text, &file)
	if err != nil {
		// Error names the line; other formats of the error repeat its content.
		return nil, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, unknownKey(unknown[0])
	}
	if len(file.Providers) == 0 {
		return nil, errors.New("no provider (each is a table [providers.ID])")
	}
	var providers []Provider
	for _, id := range slices.Sorted(maps.Keys(file.Providers)) {
		p, err := file.Providers[id].provider(id)
		if err != nil {
			return nil, fmt.Errorf("provider %q: %w", id, err)
		}
		providers = append(providers, p)
	}
	return providers, nil
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
	if table.Accepts != nil {
		var err error
		if p.Accepts, err = table.accepts(); err != nil {
			return p, fmt.Errorf("accepts: %w", err)
		}
	}
	if n := table.ContextWindow; n != nil {
		if *n < 1 || *n > maxContextWindow {
			return p, fmt.Errorf("context_window: %d is out of range (1 to %d tokens)", *n, maxContextWindow)
		}
		p.ContextWindow = *n
	}
	if table.Price == nil {
		return p, nil
	}
	price, err := table.Price.price()
	if err != nil {
		return p, err
	}
	p.Price = &price
	return p, nil
}

// partMedia names the kinds of media that can be content parts.
var partMedia = map[string]event.Media{"image": event.MediaImage, "pdf": event.MediaPDF, "audio": event.MediaAudio}

// accepts returns the kinds of media of a table, not nil.
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

// price returns the price of a table. Cached input defaults to the price of input.
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
		if v := *field.value; math.IsNaN(v) || v < 0 || v > maxPrice {
			return Price{}, fmt.Errorf("price.%s: %v is out of range (0 to %d US dollars per million tokens)", field.name, v, maxPrice)
		}
	}
	return Price{Input: *table.Input, CachedInput: *table.CachedInput, Output: *table.Output}, nil
}

// unknownKey returns the error for an unknown key, with a suggestion if it resembles a known
// one.
func unknownKey(key toml.Key) error {
	if key[0] != "providers" {
		key = key[:1]
	}
	problem := fmt.Sprintf("unknown key %q", key[len(key)-1])
	if len(key) > 2 {
		problem = fmt.Sprintf("provider %q: unknown key %q", key[1], strings.Join(key[2:], "."))
	}
	var known []string
	if len(key) < len(providerKeys) {
		known = providerKeys[len(key)]
	}
	if len(known) == 0 {
		return errors.New(problem)
	}
	nearest := slices.MinFunc(known, func(a, b string) int { return distance(a, key[len(key)-1]) - distance(b, key[len(key)-1]) })
	if distance(nearest, key[len(key)-1]) <= 3 {
		return fmt.Errorf("%s (did you mean %q?)", problem, nearest)
	}
	return fmt.Errorf("%s (want one of %s)", problem, strings.Join(known, ", "))
}

// distance returns the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
