package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

func (a *app) progress(log *zap.Logger, message string) {
	if a.settings.JSON {
		log.Info(message)
		return
	}
	fmt.Fprintf(a.err, "worker: %s\n", message)
}

func (a *app) announce(at endpoints, dev *local, tools *tool.Set, log *zap.Logger) {
	model := at.model()
	if !a.warnAboutModels(at, log) {
		model = noModel
	}
	facts := []zap.Field{zap.String("temporal", at.temporal.HostPort)}
	add := func(key, value string) {
		if value != "" {
			facts = append(facts, zap.String(key, value))
		}
	}
	if dev != nil {
		add("ui", dev.temporal.UIURL())
	}
	add("nats", stream.RedactURL(at.natsURL))
	add("blobs", event.Redact(at.blobURL, 0))
	add("model", model)
	add("approve", strings.Join(a.settings.Approve, ","))
	add("hooks", strings.Join(at.hookNames(), ","))
	add("titles", a.settings.Titles)
	add("budgets", strings.Join(at.budgetNames(), ","))
	add("retention", strings.Join(ruleNames(at.retention), "; "))
	if dev != nil {
		add("data", dev.dataDir)
	}
	if address := at.telemetry.Address(); address != "" {
		add("metrics", "http://"+connect.Dialable(address)+"/metrics")
	}
	if dev != nil && !a.settings.JSON {
		fmt.Fprint(a.err, banner(at, dev.temporal.UIURL(), dev.dataDir, append(tools.Names(), mcpNames(at.mcp)...)))
	}
	switch {
	case len(a.settings.command) > 0:
		// The command uses the terminal.
	case a.settings.JSON:
		logging.New(a.out, true, zap.InfoLevel).Info("ready", facts...)
	default:
		fmt.Fprintln(a.out, readyLine(facts))
	}
}

// warnAboutModels logs missing models and keys, and reports whether contexts without a provider of
// their own get answers.
func (a *app) warnAboutModels(at endpoints, log *zap.Logger) (areAnswered bool) {
	if a.settings.part() == contexts.OnlyWorkflows {
		return true
	}
	err := at.unanswerable()
	if err != nil {
		log.Warn(unanswerableHelp, zap.Error(err))
	}
	for _, err := range llm.New(at.models).MissingKeys() {
		log.Warn("a configured provider has no key", zap.Error(err))
	}
	return err == nil
}

func readyLine(facts []zap.Field) string {
	line := "ready"
	for _, fact := range facts {
		value := fact.String
		if strings.ContainsAny(value, " \"=\\") {
			value = strconv.Quote(value)
		}
		line += " " + fact.Key + "=" + value
	}
	return line
}

func banner(at endpoints, uiURL, dataDir string, tools []string) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "  %-9s %s\n", name, value) }
	b.WriteString("Chronicle is running on this machine only:\n")
	line("Temporal", at.temporal.HostPort)
	line("Web UI", uiURL)
	line("NATS", at.natsURL)
	if at.modelURL != "" {
		line("Model", at.model()+", a built-in stand-in that repeats its input, NOT A REAL MODEL.")
		line("", "Set OPENAI_API_KEY or OPENAI_BASE_URL to use a real one.")
	} else {
		line("Model", at.model()+" at "+cmp.Or(at.models.Defaults.BaseURL, "OpenAI"))
	}
	line("Tools", strings.Join(tools, ", ")+", for contexts that name them")
	if len(at.hooks) > 0 {
		line("Hooks", strings.Join(at.hookNames(), ", ")+", for all contexts")
	}
	if len(at.budgets) > 0 {
		line("Budgets", strings.Join(at.budgetNames(), ", ")+", per day")
	}
	line("Data", dataDir)
	line("Store", event.Redact(at.blobURL, 0))
	return b.String()
}

func (p endpoints) hookNames() (names []string) {
	for _, h := range p.hooks {
		names = append(names, h.Name)
	}
	return names
}

// budgetNames returns LABEL=VALUE for a budget of one value, and LABEL for a budget without a value, which applies
// separately to each value that no other budget names.
func (p endpoints) budgetNames() (names []string) {
	for _, b := range p.budgets {
		names = append(names, strings.TrimSuffix(b.Label+"="+b.Value, "="))
	}
	return names
}
