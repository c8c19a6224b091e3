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
}

func readFile(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, text: string(data), tree: map[string]any{}}
	return f, tomlfile.Decode(path, f.text, &f.tree)
}

// value returns the value of a key in a table. A nil file has no keys.
func (f *file) value(table, key string) (value any, isKnown bool) {
	if f == nil {
		return nil, false
	}
	keys := f.tree
	if table != "" {
		keys, _ = f.tree[table].(map[string]any)
	}
	value, isKnown = keys[key]
	return value, isKnown
}

// check returns an error for the first key that is unknown or has a value of the wrong type. It ignores
// the content of [Parts]. The first table is that of the top level.
func (f *file) check(tables []*Table) error {
	for _, name := range slices.Sorted(maps.Keys(f.tree)) {
		if slices.Contains(Parts, name) {
			continue
		}
		if err := checkKey(name, f.tree[name], tables); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return nil
}

// checkKey checks a key of the top level: that of a flag or of a table.
func checkKey(name string, value any, tables []*Table) error {
	i := slices.IndexFunc(tables[1:], func(t *Table) bool { return t.name == name })
	if i < 0 {
		return tables[0].checkKey(name, value, tables)
	}
	keys, isTable := value.(map[string]any)
	if !isTable {
		return fmt.Errorf("%s: want a table, got %s", name, tomlfile.Kind(value))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := tables[1+i].checkKey(key, keys[key], tables); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) checkKey(name string, value any, all []*Table) error {
	flag := t.withKey(name)
	if flag == nil {
		return t.unknownKey(name, all)
	}
	if err := checkType(flag, value); err != nil {
		return fmt.Errorf("%s%w", t.Key(flag.Name), err)
	}
	return nil
}

// unknownKey suggests the same key of another table, or one that resembles it.
func (t *Table) unknownKey(name string, all []*Table) error {
	path := strings.TrimPrefix(t.name+"."+name, ".")
	for _, other := range all {
		if f := other.withKey(keyOf(name)); f != nil {
			return fmt.Errorf("unknown key %q (did you mean %q?)", path, other.Key(f.Name))
		}
	}
	known := t.keys()
	if t.name == "" {
		known = append(known, Parts...)
		for _, table := range all[1:] {
			known = append(known, table.name)
		}
	}
	return fmt.Errorf("unknown key %q %s", path, event.Suggest(path, known...))
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
