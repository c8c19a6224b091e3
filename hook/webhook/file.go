package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/hook"
	"github.com/seed-9ed7edd4/chronicle/internal/secretref"
	"github.com/seed-9ed7edd4/chronicle/internal/tomlfile"
)

// Options configure [ReadFile].
type Options struct {
	Getenv        func(string) string // nil: [os.Getenv]
	AllowLoopback bool                // also accept http URLs of this machine
	WithoutCalls  bool                // read no secrets: the hooks are not called
}

const (
	maxTimeout = time.Minute
	maxRetries = 10
)

// table is an element of [[hooks]].
type table struct {
	Name      string   `toml:"name"`
	URL       string   `toml:"url"`
	Stages    []string `toml:"stages"`
	Events    []string `toml:"events"`
	Contexts  []string `toml:"contexts"`
	Beside    bool     `toml:"beside"`
	Deltas    string   `toml:"deltas"`
	Timeout   string   `toml:"timeout"`
	Retries   int      `toml:"retries"`
	OnFailure string   `toml:"on_failure"`
	From      string   `toml:"from"`
	SkipAfter string   `toml:"skip_after"`
	Secret    string   `toml:"secret"`
}

// ReadFile reads a file like examples/config/hooks.toml and the secrets that it refers to. Errors name file,
// hook and field.
func ReadFile(name string, options Options) ([]hook.Hook, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	hooks, err := options.parse(name, string(data))
	if err == nil && len(hooks) == 0 {
		err = fmt.Errorf("%s: no hook (each is a table [[hooks]])", name)
	}
	return hooks, err
}

// Key is the top-level key of a file of webhooks.
const Key = "hooks"

// Parse reads the [Key] in the text of a configuration file. It ignores all others.
func Parse(name, text string, options Options) ([]hook.Hook, error) {
	return options.parse(name, text, Key)
}

// parse reads the text of a file. With parts, other keys at the top level are allowed.
func (o Options) parse(name, text string, parts ...string) (hooks []hook.Hook, err error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	var file struct {
		Hooks []table `toml:"hooks"`
	}
	if err := tomlfile.Decode(name, text, &file, parts...); err != nil {
		return nil, err
	}
	for i, t := range file.Hooks {
		h, err := o.hookOf(t)
		if err != nil {
			return nil, fmt.Errorf("%s: hook %s: %w", name, labelOf(i, t.Name), err)
		}
		hooks = append(hooks, h)
	}
	if err := hook.Validate(hooks); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return hooks, nil
}

// labelOf names a hook in errors.
func labelOf(i int, name string) string {
	return cmp.Or(event.Redact(name, 64), fmt.Sprintf("number %d", i+1))
}

func (o Options) hookOf(t table) (h hook.Hook, err error) {
	if err := event.ValidateName("name", t.Name); err != nil {
		return h, err
	}
	if err := o.checkURL(t.URL); err != nil {
		return h, fmt.Errorf("url: %w", err)
	}
	e := endpoint{name: t.Name, url: t.URL, retries: t.Retries, client: newClient(), tags: t.Events, contexts: t.Contexts}
	if !o.WithoutCalls {
		if e.signer, err = o.signer(t.Secret); err != nil {
			return h, fmt.Errorf("secret: %w", err)
		}
	}
	if t.Retries < 0 || t.Retries > maxRetries {
		return h, fmt.Errorf("retries: want 0 to %d, got %d", maxRetries, t.Retries)
	}
	for _, field := range []struct{ name, value, usual, other string }{
		{"on_failure", t.OnFailure, "closed", "open"}, {"deltas", t.Deltas, "show", "withhold"}, {"from", t.From, "new", "start"},
	} {
		if !slices.Contains([]string{"", field.usual, field.other}, field.value) {
			return h, fmt.Errorf("%s: want %q or %q, got %q", field.name, field.usual, field.other, field.value)
		}
	}
	h = hook.Hook{
		Name: t.Name, Beside: t.Beside, OnFailure: hook.OnFailure(t.OnFailure), Withhold: t.Deltas == "withhold", FromStart: t.From == "start",
	}
	if t.Timeout != "" {
		if h.Timeout, err = time.ParseDuration(t.Timeout); err != nil || h.Timeout <= 0 || h.Timeout > maxTimeout {
			return h, fmt.Errorf("timeout: want a duration like 5s, at most %v, got %q", maxTimeout, t.Timeout)
		}
	}
	if t.SkipAfter != "" {
		if h.SkipAfter, err = time.ParseDuration(t.SkipAfter); err != nil || h.SkipAfter <= 0 {
			return h, fmt.Errorf("skip_after: want a duration like 1h, got %q", t.SkipAfter)
		}
	}
	if err := checkTags(t.Events); err != nil {
		return h, err
	}
	if len(t.Stages) == 0 && len(t.Events) > 0 {
		t.Stages = []string{StageEvent}
	}
	if len(t.Stages) == 0 {
		return h, errors.New(`stages: missing (want "before", "after" or "event")`)
	}
	for i, stage := range t.Stages {
		switch {
		case slices.Contains(t.Stages[:i], stage):
			return h, fmt.Errorf("stages: %q is listed twice", stage)
		case stage == StageEvent:
			h.OnEvent = e.onEvent
		case stage == string(event.HookAfter):
			h.After = e.after
		case stage == string(event.HookBefore) && t.Beside:
			h.Before = e.before(event.HookBeside)
		case stage == string(event.HookBefore):
			h.Before = e.before(event.HookBefore)
		default:
			return h, fmt.Errorf(`stages: want "before", "after" or "event", got %q`, stage)
		}
	}
	switch {
	case t.Beside && h.Before == nil:
		return h, errors.New(`beside: requires the stage "before"`)
	case t.From != "" && h.OnEvent == nil:
		return h, errors.New(`from: requires the stage "event"`)
	case len(t.Events) > 0 && h.OnEvent == nil:
		return h, errors.New(`events: requires the stage "event"`)
	case len(t.Contexts) > 0 && h.OnEvent == nil:
		return h, errors.New(`contexts: requires the stage "event"`)
	case t.SkipAfter != "" && (h.OnEvent == nil || h.OnFailure != hook.Open):
		return h, errors.New(`skip_after: requires the stage "event" and on_failure = "open"`)
	case h.Withhold && !t.Beside && h.After == nil:
		return h, errors.New(`deltas: "withhold" requires the stage "after" or beside = true (deltas always follow the verdict of the stage "before")`)
	}
	return h, nil
}

// checkTags accepts the tags of recorded events.
func checkTags(tags []string) error {
	var known []string
	for _, tag := range event.Tags() {
		if tag.Class() != event.ClassEphemeral {
			known = append(known, string(tag))
		}
	}
	for _, tag := range tags {
		if !slices.Contains(known, tag) {
			return fmt.Errorf("events: unknown kind %q %s", event.Redact(tag, 64), event.Suggest(tag, known...))
		}
	}
	return nil
}

func (o Options) checkURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return errors.New("missing (want an https URL like https://guard.example.com/check)")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("want an https URL like https://guard.example.com/check")
	case u.User != nil || u.Fragment != "":
		return errors.New("contains a user or fragment")
	case u.Scheme == "http" && !(o.AllowLoopback && isLoopback(u.Hostname())):
		return errors.New("want https (http is allowed with --dev, for 127.0.0.1, [::1] and localhost)")
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && net.IP(address.AsSlice()).IsLoopback()
}

// minKeyBytes is the minimum length of a key in the Standard Webhooks specification.
const minKeyBytes = 24

// signer reads the secret that ref names: whsec_ and a key in base64.
func (o Options) signer(ref string) (*standardwebhooks.Webhook, error) {
	secret, err := secretref.Read(ref, o.Getenv, nil)
	if err != nil {
		return nil, err
	}
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil || len(strings.TrimPrefix(secret, "whsec_")) < minKeyBytes*4/3 {
		return nil, fmt.Errorf("%s: want whsec_ and a key of at least %d bytes in base64", ref, minKeyBytes)
	}
	return signer, nil
}
