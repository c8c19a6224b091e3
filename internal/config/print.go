package config

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Value is the value of a setting that no flag, variable or file sets. An empty Origin means default.
type Value struct{ Value, Origin string }

// Print prints all settings as a file for --config, each with its origin, and without secrets.
// derived has the values of settings that no flag, variable or file sets, by flag.
func (c *Config) Print(w io.Writer, getenv func(string) string, derived map[string]Value) error {
	var b bytes.Buffer
	for _, t := range c.tables {
		if t.name != "" {
			fmt.Fprintf(&b, "\n[%s]\n", t.name)
		}
		t.VisitAll(func(f *pflag.Flag) { c.printFlag(&b, t, f, derived) })
		for _, v := range t.variables {
			if !v.isFamily() {
				fmt.Fprintf(&b, "# %s\n", variableLine(v, getenv(v.Name)))
			}
		}
		if t.name == "" {
			c.printPart(&b, func(value any) bool { return !isTable(value) })
		}
	}
	c.printPart(&b, isTable)
	_, err := w.Write(b.Bytes())
	return err
}

func variableLine(v Variable, value string) string {
	switch {
	case value == "":
		return v.Name + ": not set"
	case v.IsSecret:
		return v.Name + " = " + event.Removed + "  # env " + v.Name
	}
	return fmt.Sprintf("%s = %q  # env %[1]s", v.Name, redact(value))
}

func (c *Config) printFlag(b *bytes.Buffer, t *Table, f *pflag.Flag, derived map[string]Value) {
	origin, value := c.origins[f].String(), any(t.redacted(f.Name, f.Value.String()))
	if d, isDerived := derived[f.Name]; isDerived && f.Value.String() == "" {
		value = t.redacted(f.Name, d.Value)
		if d.Origin != "" {
			origin = d.Origin
		}
	}
	switch f.Value.Type() {
	case "bool", "int", "int64", "float64":
		fmt.Fprintf(b, "%s = %s  # %s\n", keyOf(f.Name), value, origin)
		return
	case "stringArray":
		list := []string{}
		for _, text := range f.Value.(pflag.SliceValue).GetSlice() {
			list = append(list, t.redacted(f.Name, text))
		}
		value = list
	}
	var line bytes.Buffer
	_ = toml.NewEncoder(&line).Encode(map[string]any{keyOf(f.Name): value}) // strings are valid values
	fmt.Fprintf(b, "%s  # %s\n", strings.TrimSuffix(line.String(), "\n"), origin)
}

func isTable(value any) bool {
	switch value.(type) {
	case map[string]any, []map[string]any:
		return true
	}
	return false
}

// printPart prints those parts of the file whose values are selected.
func (c *Config) printPart(b *bytes.Buffer, isSelected func(any) bool) {
	selected := map[string]any{}
	for _, part := range Parts {
		if value, ok := c.file.tree[part]; ok && isSelected(value) && !slices.Contains(c.omitted, part) {
			selected[part] = value
		}
	}
	if len(selected) > 0 {
		fmt.Fprintf(b, "\n# %s:\n", c.file.path)
		printTree(b, selected)
	}
}

func printTree(b *bytes.Buffer, tree map[string]any) {
	encoder := toml.NewEncoder(b)
	encoder.Indent = ""
	if err := encoder.Encode(redactAll(tree)); err != nil {
		fmt.Fprintf(b, "# it cannot be printed: %v\n", err)
	}
}

// secretParameter matches a parameter of a URL that is named like a secret.
var secretParameter = regexp.MustCompile(`(?i)([?&][^=&#]*(?:token|key|secret|sig|pass|auth|cred)[^=&#]*=)[^&#\s]+`)

func redact(text string) string {
	return event.Redact(secretParameter.ReplaceAllString(text, "${1}"+event.Removed), 0)
}

// redacted returns a value of a flag without secrets.
func (t *Table) redacted(flag, value string) string {
	if of := t.redact[flag]; of != nil {
		value = of(value)
	}
	return redact(value)
}

// redactAll returns a copy without secrets in strings.
func redactAll(value any) any {
	switch v := value.(type) {
	case string:
		return redact(v)
	case map[string]any:
		redacted := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			redacted[key] = redactAll(v[key])
		}
		return redacted
	case []map[string]any:
		redacted := []map[string]any{}
		for _, table := range v {
			redacted = append(redacted, redactAll(table).(map[string]any))
		}
		return redacted
	case []any:
		redacted := []any{}
		for _, element := range v {
			redacted = append(redacted, redactAll(element))
		}
		return redacted
	}
	return value
}

// Omit excludes top-level keys of the file from the output of [Config.Print], because the program does
// not use them.
func (c *Config) Omit(keys ...string) { c.omitted = append(c.omitted, keys...) }

// PrintFile prints another file, like that of --providers, in comments.
func PrintFile(w io.Writer, path string) error {
	f, err := readFile(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	printTree(&b, f.tree)
	if _, err := fmt.Fprintf(w, "\n# %s:\n", path); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintf(w, "# %s", line); err != nil {
			return err
		}
	}
	return nil
}
