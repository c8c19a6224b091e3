package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/tomlfile"
)

type file struct {
	path, text string
	tree       map[string]any
	values     map[string]any // of settings, by key, like worker.json; set by settle
}

func readFile(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, text: string(data), tree: map[string]any{}}
	return f, tomlfile.Decode(path, f.text, &f.tree)
}

// settle finds the values of the settings in tables, the first of which is that of the top level. The error is that of
// the first key that is unknown or has a value of the wrong type. The content of [Parts] is ignored.
func (f *file) settle(tables []*Table) error {
	f.values = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(f.tree)) {
		keys, isTable := f.tree[name].(map[string]any)
		switch {
		case slices.Contains(Parts, name):
		case !slices.ContainsFunc(tables[1:], func(t *Table) bool { return t.name == name }):
			f.values[name] = f.tree[name]
		case !isTable:
			return fmt.Errorf("%s: %s: want a table, got %s", f.path, name, tomlfile.Kind(f.tree[name]))
		default:
			for key, value := range keys {
				f.values[name+"."+key] = value
			}
		}
	}
	flags := map[string]*pflag.Flag{}
	for _, t := range tables {
		t.VisitAll(func(flag *pflag.Flag) { flags[t.Key(flag.Name)] = flag })
	}
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		flag := flags[key]
		if flag == nil {
			return fmt.Errorf("%s: unknown key %q %s", f.path, key, suggest(key, tables))
		}
		if err := checkType(flag, f.values[key]); err != nil {
			return fmt.Errorf("%s: %s%w", f.path, key, err)
		}
	}
	return nil
}

// suggest suggests the same key of another table, or one of the same table that resembles it.
func suggest(key string, tables []*Table) string {
	table, name, isInTable := strings.Cut(key, ".")
	if !isInTable {
		table, name = "", key
	}
	var known []string
	for _, t := range tables {
		if f := t.Lookup(strings.ReplaceAll(name, "_", "-")); f != nil {
			return fmt.Sprintf("(did you mean %q?)", t.Key(f.Name))
		}
		if t.name == table {
			t.VisitAll(func(f *pflag.Flag) { known = append(known, t.Key(f.Name)) })
		}
	}
	if table == "" {
		known = append(known, Parts...)
		for _, t := range tables[1:] {
			known = append(known, t.name)
		}
	}
	return event.Suggest(key, known...)
}

// checkType returns an error unless a value is valid for a flag. The caller prefixes the error with the key.
func checkType(f *pflag.Flag, value any) error {
	if _, ok := textsOf(f.Value.Type(), value); ok {
		return nil
	}
	switch v := value.(type) {
	case string:
		return fmt.Errorf(" %q: want %s", event.Redact(v, maxShown), exit.Allowed(f))
	case bool, int64, float64:
		return fmt.Errorf(" %v: want %s", value, exit.Allowed(f))
	}
	// Parts of a list or a table may be secrets.
	return fmt.Errorf(": want %s, got %s", exit.Allowed(f), tomlfile.Kind(value))
}

// textsOf returns a value as the argument of a flag; for a list, one argument per element. It returns
// false if the value is invalid for the type of the flag.
func textsOf(kind string, value any) (texts []string, ok bool) {
	switch v := value.(type) {
	case bool:
		return []string{strconv.FormatBool(v)}, kind == "bool"
	case int64:
		return []string{strconv.FormatInt(v, 10)}, kind == "int" || kind == "int64" || kind == "float64"
	case float64:
		return []string{strconv.FormatFloat(v, 'g', -1, 64)}, kind == "float64"
	case string:
		switch kind {
		case "string":
			return []string{v}, true
		case "duration":
			_, err := time.ParseDuration(v)
			return []string{v}, err == nil
		case "level":
			return []string{v}, new(Level).Set(v) == nil
		}
	case []any:
		for _, element := range v {
			text, isString := element.(string)
			if !isString {
				return nil, false
			}
			texts = append(texts, text)
		}
		return texts, kind == "stringArray"
	}
	return nil, false
}

// setValue sets a flag to a value that [checkType] accepts.
func setValue(f *pflag.Flag, value any) error {
	texts, _ := textsOf(f.Value.Type(), value)
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.Replace(texts)
	}
	return f.Value.Set(texts[0])
}

const maxShown = 100 // bytes
