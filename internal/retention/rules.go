// Package retention deletes contexts that were inactive for long, by rules in the configuration of workers.
package retention

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/tomlfile"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Key is the top-level key of the rules in a configuration file.
const Key = "retention"

// Rule deletes the contexts that it matches some time after their last activity.
type Rule struct {
	After    time.Duration
	Tenant   string            // "": contexts of all tenants, and without one
	Labels   map[string]string // that a context has, among others; nil: any
	Archived bool              // only contexts with the archive mark
	Forks    client.Forks      // what happens to the forks of the context
}

// ShortRule is the duration below which a rule is probably a mistake.
const ShortRule = 24 * time.Hour

func (r Rule) String() string {
	parts := []string{"after " + durationText(r.After)}
	if r.Tenant != "" {
		parts = append(parts, "tenant "+r.Tenant)
	}
	for _, label := range slices.Sorted(maps.Keys(r.Labels)) {
		parts = append(parts, label+"="+r.Labels[label])
	}
	if r.Archived {
		parts = append(parts, "archived")
	}
	if r.Forks == client.DeleteForks {
		parts = append(parts, "with forks")
	}
	return strings.Join(parts, ", ")
}

func durationText(d time.Duration) string {
	if d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// needsDetails reports whether the rule depends on more than the name.
func (r Rule) needsDetails() bool { return r.Archived || len(r.Labels) > 0 }

func (r Rule) isFor(contextName string) bool {
	tenant, _ := event.CutTenant(contextName)
	return r.Tenant == "" || r.Tenant == tenant
}

func (r Rule) matches(d reducer.Details) bool {
	for label, value := range r.Labels {
		if got, ok := d.Labels[label]; !ok || got != value {
			return false
		}
	}
	return d.Archived || !r.Archived
}

type table struct {
	After    string            `toml:"after"`
	Tenant   string            `toml:"tenant"`
	Labels   map[string]string `toml:"labels"`
	Archived bool              `toml:"archived"`
	Forks    string            `toml:"forks"`
}

// Parse reads the rules in the text of a configuration file. It ignores all other keys. Errors contain no strings of
// the text.
func Parse(name, text string) (rules []Rule, err error) {
	var file struct {
		Rules []table `toml:"retention"`
	}
	if err := tomlfile.Decode(name, text, &file, Key); err != nil {
		return nil, err
	}
	for i, t := range file.Rules {
		rule, err := t.rule()
		if err != nil {
			return nil, fmt.Errorf("%s: %s %d: %w", name, Key, i+1, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func (t table) rule() (r Rule, err error) {
	r = Rule{Tenant: t.Tenant, Labels: t.Labels, Archived: t.Archived, Forks: client.Forks(cmp.Or(t.Forks, string(client.KeepForks)))}
	if r.After, err = parseDuration(t.After); err != nil {
		return r, fmt.Errorf("after: %w", err)
	}
	if !slices.Contains(r.Forks.Values(), r.Forks) {
		return r, errors.New("forks: invalid (want keep or delete)")
	}
	if t.Tenant != "" && event.ValidateTenant(t.Tenant) != nil {
		return r, errors.New("tenant: invalid (want 1-64 of A-Z a-z 0-9 . _ -, first a letter or digit)")
	}
	var field *event.FieldError
	if err := event.New(event.SetDetails{Labels: t.Labels}).Validate(); errors.As(err, &field) && len(t.Labels) > 0 {
		return r, errors.New("labels: invalid (want the labels of contexts, like labels = { team = \"support\" })")
	}
	return r, nil
}

const day = 24 * time.Hour

// maxDays keeps the duration from overflowing.
const maxDays = 36500

func parseDuration(text string) (d time.Duration, err error) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, daysErr := strconv.Atoi(days)
		d, err = time.Duration(n)*day, daysErr
		if n > maxDays {
			err = strconv.ErrRange
		}
	} else {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("missing or invalid (want a duration like 90d or 12h, 1s to %dd)", maxDays)
	}
	return d, nil
}
