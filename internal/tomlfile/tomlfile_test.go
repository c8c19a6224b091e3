package tomlfile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/tomlfile"
)

type file struct {
	Hooks []struct {
		Name    string   `toml:"name"`
		Beside  bool     `toml:"beside"`
		Stages  []string `toml:"stages"`
		Retries int      `toml:"retries"`
		Cost    *float64 `toml:"cost"`
		embedded
		Models map[string]embedded `toml:"models"`
	} `toml:"hooks"`
}

type embedded struct {
	Window *int64 `toml:"window"`
}

func TestAFileIsDecoded(t *testing.T) {
	var f file
	require.NoError(t, tomlfile.Decode("hooks.toml", "[[hooks]]\nname = \"a\"\nbeside = true\nstages = [\"before\"]\nretries = 2\ncost = 3\nwindow = 4\nmodels.x.window = 5", &f))
	h := f.Hooks[0]
	require.Equal(t, []any{"a", true, []string{"before"}, 2, 3.0, int64(4), int64(5)},
		[]any{h.Name, h.Beside, h.Stages, h.Retries, *h.Cost, *h.Window, *h.Models["x"].Window})
}

func TestErrorsNameTheKeyAndContainNoStrings(t *testing.T) {
	for text, want := range map[string]string{
		"name = 5":               `hooks.toml: line 2 (last key "hooks.name"): incompatible types: TOML value has type int64; destination has type string`,
		"stages = \"s3cr3t\"":    `hooks.toml: line 2 (last key "hooks.stages"): incompatible types: TOML value has type string; destination has type slice`,
		"retries = \"s3cr3t\"":   `hooks.toml: line 2 (last key "hooks.retries"): incompatible types: TOML value has type string; destination has type integer`,
		"name = s3cr3t":          `hooks.toml: line 2 (last key "hooks.name"): expected value but found "s" instead`,
		"window = 1\nwidnow = 1": `hooks.toml: unknown key "hooks.widnow" (did you mean "window"?)`,
		"models = 5":             `hooks.toml: hooks.models: want a table`,
		"models.x.width = 5":     `hooks.toml: unknown key "hooks.models.x.width" (did you mean "window"?)`,
		"other.key = \"s3cr3t\"": `hooks.toml: unknown key "hooks.other" (want one of name, beside, stages, retries, cost, window, models)`,
	} {
		assert.EqualError(t, tomlfile.Decode("hooks.toml", "[[hooks]]\n"+text, new(file)), want, text)
	}
	require.EqualError(t, tomlfile.Decode("hooks.toml", "hook = 1", new(file)), `hooks.toml: unknown key "hook" (did you mean "hooks"?)`)
	require.NoError(t, tomlfile.Decode("chronicle.toml", "hook = 1", new(file), "hooks"), "another part of the file")
}
