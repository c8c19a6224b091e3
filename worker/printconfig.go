package main

import (
	"fmt"
	"path/filepath"

	"github.com/seed-9ed7edd4/chronicle/hook/webhook"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
	"github.com/seed-9ed7edd4/chronicle/llm"
)

// printConfig validates and prints the configuration.
func (a *app) printConfig() error {
	if _, _, err := a.modelOptions(); err != nil {
		return err
	}
	if _, err := a.mcpServers(); err != nil {
		return err
	}
	if _, err := a.readHooks(true); err != nil {
		return err
	}
	if _, err := a.retentionRules(); err != nil {
		return err
	}
	derived, err := a.derived()
	if err != nil {
		return err
	}
	if a.settings.ProvidersFile != "" {
		a.config.Omit(llm.ProviderKeys...)
	}
	if a.settings.HooksFile != "" {
		a.config.Omit(webhook.Key)
	}
	if err := a.config.Print(a.out, a.getenv, derived); err != nil {
		return err
	}
	for _, file := range []string{a.settings.ProvidersFile, a.settings.HooksFile} {
		if file == "" {
			continue
		}
		if err := config.PrintFile(a.out, file); err != nil {
			return err
		}
	}
	return nil
}

// derived returns the values of settings that no flag, variable or file sets, by flag.
func (a *app) derived() (map[string]config.Value, error) {
	s := &a.settings
	values := map[string]config.Value{}
	dataDir := config.DefaultDataDir
	if s.dev {
		dataDir = s.DataDir
		const origin = "flag --dev"
		values["address"] = config.Value{Value: fmt.Sprintf("127.0.0.1:%d", s.TemporalPort), Origin: origin}
		values["namespace"] = config.Value{Value: "default"}
		values["nats-url"] = config.Value{Value: fmt.Sprintf("nats://127.0.0.1:%d", s.NATSPort), Origin: origin}
		values["nats-token-file"] = config.Value{Value: filepath.Join(dataDir, stream.DevToken), Origin: origin}
	} else {
		var err error
		if values, err = s.Connection.Derived(a.getenv); err != nil {
			return nil, err
		}
	}
	blobURL, err := a.blobURL(dataDir)
	if err != nil {
		return nil, err
	}
	values["blob-url"] = config.Value{Value: blobURL}
	return values, nil
}
