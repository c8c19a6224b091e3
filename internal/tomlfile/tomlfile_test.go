package tomlfile_test

import (
	"errors"
	"strings"
	"testing"

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

func TestErrorsNameTheKeyAndBothTypes(t *testing.T) {
	for text, want := range map[string]string{
		"name = 5":                             `hooks[1].name: want a string, got an integer`,
		"name = \"a\"\n[[hooks]]\nname = true": `hooks[2].name: want a string, got a boolean`,
		"beside = \"yes\"":                     `hooks[1].beside: want true or false, got a string`,
		"stages = \"before\"":                  `hooks[1].stages: want a list, got a string`,
		"stages = [1]":                         `hooks[1].stages[1]: want a string, got an integer`,
		"retries = 1.5":                        `hooks[1].retries: want an integer, got a floating-point number`,
		"cost = 12:00:00":                      `hooks[1].cost: want a number, got a date or time`,
		"cost = []":                            `hooks[1].cost: want a number, got a list`,
		"window = [[1]]":                       `hooks[1].window: want an integer, got a list`,
		"models = 5":                           `hooks[1].models: want a table, got an integer`,
		"models.x = 5":                         `hooks[1].models.x: want a table, got an integer`,
		"models.\"x.y\".window = {}":           `hooks[1].models."x.y".window: want an integer, got a table`,
		"retries = 99999999999999999999":       `line 2 (last key "hooks.retries"): the number is out of range`,
		"cost = 9007199254740999":              `line 2 (last key "hooks.cost"): the number is out of range`,
		"cost = 1e999":                         `line 2 (last key "hooks.cost"): the number is out of range`,
		"name = x":                             `line 2 (last key "hooks.name"): expected value but found "x" instead`,
	} {
		_, err := tomlfile.Decode("[[hooks]]\n"+text, new(file))
		require.EqualError(t, err, want, text)
	}
	for text, want := range map[string]string{
		"[hooks]\nname = \"a\"": `hooks: want tables [[hooks]], got a table`,
		"hooks = [\"s3cr3t\"]":  `hooks[1]: want a table, got a string`,
		"hooks = \"s3cr3t\"":    `hooks: want tables [[hooks]], got a string`,
	} {
		_, err := tomlfile.Decode(text, new(file))
		require.EqualError(t, err, want, text)
	}
}

func TestAFileIsDecoded(t *testing.T) {
	var f file
	meta, err := tomlfile.Decode("[[hooks]]\nname = \"a\"\nbeside = true\nstages = [\"before\"]\nretries = 2\ncost = 3\nwindow = 4\nother = {}\nmodels.x.window = 5", &f)
	require.NoError(t, err)
	require.Len(t, meta.Undecoded(), 1)
	h := f.Hooks[0]
	require.Equal(t, []any{"a", true, []string{"before"}, 2, 3.0, int64(4), int64(5)},
		[]any{h.Name, h.Beside, h.Stages, h.Retries, *h.Cost, *h.Window, *h.Models["x"].Window})
}

func TestLines(t *testing.T) {
	lines := tomlfile.NewLines("a = 1\n\n[b]\nc = [\n  1,\n]\nd.\"e.f\" = 2\n[b.g]\nh = { i = 1 }\n[[k]]\nl = 1\nm = 1\n[[k]]\nl = 2\n")
	for key, want := range map[string]int{"a": 1, "b": 3, "b/c": 4, "b/d/e.f": 7, "b/g": 8, "b/g/h/i": 9, "k/m": 12, "k/l": 0, "b/x": 0, "x/y": 0, "a/x": 0} {
		require.Equal(t, want, lines.Of(strings.Split(key, "/")...), key)
	}
	require.Zero(t, tomlfile.NewLines("a = [").Of("a"))
}

func TestErrorsHaveALine(t *testing.T) {
	_, err := tomlfile.Decode("# A comment.\n[[hooks]]\nname = \"a\"\nretries = \"two\"", new(file))
	require.EqualError(t, tomlfile.At("hooks.toml", err), "hooks.toml:4: hooks[1].retries: want an integer, got a string")
	require.EqualError(t, tomlfile.At("hooks.toml", errors.New("empty")), "hooks.toml: empty")
}
