package config

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
	"github.com/seed-9ed7edd4/chronicle/internal/tomlfile"
)

type file struct {
	path, text string
	tree       map[string]any
	keys       []toml.Key // in the order of the file
	lines      *tomlfile.Lines
}

func readFile(path string) (*file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, text: string(data), tree: map[string]any{}}
	meta, err := tomlfile.Decode(f.text, &f.tree)
	if err != nil {
		return nil, tomlfile.At(path, err)
	}
	f.keys, f.lines = meta.Keys(), tomlfile.NewLines(f.text)
	return f, nil
}

// value returns the value of a key, of one or two names. A nil file has no keys.
func (f *file) value(key []string) (value any, isKnown bool) {
	if f == nil {
		return nil, false
	}
	table := f.tree
	if len(key) > 1 {
		table, _ = f.tree[key[0]].(map[string]any)
	}
	value, isKnown = table[key[len(key)-1]]
	return value, isKnown
}

// check returns an error for the first key that is unknown or has a value of the wrong type. It ignores
// the content of [Parts]. The first table is that of the top level.
func (f *file) check(tables []*Table) error {
	for _, key := range f.keys {
		if slices.Contains(Parts, key[0]) {
			continue
		}
		if err := f.checkKey(key, tables); err != nil {
			return tomlfile.At(f.path, &tomlfile.Error{Line: f.lines.Of(key...), Err: err})
		}
	}
	return nil
}

func (f *file) checkKey(key toml.Key, tables []*Table) error {
	of, path := tables[0], []string(key)
	for _, t := range tables[1:] {
		if t.name == key[0] {
			of, path = t, path[1:]
		}
	}
	if len(path) == 0 {
		if _, isTable := f.tree[key[0]].(map[string]any); !isTable {
			return fmt.Errorf("%s: want a table, got %s", key, tomlfile.Kind(f.tree[key[0]]))
		}
		return nil
	}
	flag := of.withKey(path[0])
	if flag == nil {
		return unknownKey(key, path[0], of, tables)
	}
	value, _ := f.value(of.path(flag.Name))
	if err := checkType(flag, value); err != nil {
		return fmt.Errorf("%s%w", of.Key(flag.Name), err)
	}
	return nil
}

// unknownKey suggests the same key of another table, or one that resembles it.
func unknownKey(key toml.Key, name string, of *Table, tables []*Table) error {
	for _, t := range tables {
		if f := t.withKey(keyOf(name)); f != nil {
			return fmt.Errorf("unknown key %q (did you mean %q?)", key.String(), t.Key(f.Name))
		}
	}
	known := of.keys()
	if of.name == "" {
		known = append(known, Parts...)
		for _, t := range tables[1:] {
			known = append(known, t.name)
		}
	}
	return fmt.Errorf("unknown key %q %s", key.String(), event.Suggest(strings.TrimPrefix(of.name+"."+name, "."), known...))
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
