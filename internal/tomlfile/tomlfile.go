// Package tomlfile decodes TOML configuration files strictly.
package tomlfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Decode decodes the text of a file into a struct or a map. An unknown key of a struct is an error that suggests a known one. Errors
// begin with the name of the file, and contain no strings of the text: they may be misplaced secrets. With parts,
// other keys at the top level are ignored.
func Decode(name, text string, into any, parts ...string) error {
	meta, err := toml.Decode(text, into)
	if err != nil {
		// The method Error of the error names the line; its other formats repeat the content of the line.
		err = errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	for _, key := range meta.Keys() {
		if err == nil && (len(parts) == 0 || slices.Contains(parts, key[0])) {
			err = check(key, meta.Type(key...), reflect.TypeOf(into).Elem())
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// check returns an error for the first name of a key that a type does not have, and for a map that is not a table,
// which the decoder skips.
func check(key toml.Key, kind string, in reflect.Type) error {
	for i, name := range key {
		switch in = element(in); in.Kind() {
		case reflect.Map:
			in = in.Elem()
		case reflect.Struct:
			var known []string
			var next reflect.Type
			for _, field := range reflect.VisibleFields(in) {
				if tag := field.Tag.Get("toml"); tag != "" {
					known = append(known, tag)
				}
				if field.Tag.Get("toml") == name {
					next = field.Type
				}
			}
			if next == nil {
				return fmt.Errorf("unknown key %q %s", key[:i+1].String(), event.Suggest(name, known...))
			}
			in = next
		default:
			return nil
		}
	}
	if element(in).Kind() == reflect.Map && kind != "Hash" {
		return fmt.Errorf("%s: want a table", key)
	}
	return nil
}

// element returns the type of the elements of lists.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// Kind describes the type of a decoded value.
func Kind(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a table"
	case string:
		return "a string"
	case int64, float64:
		return "a number"
	case bool:
		return "a boolean"
	case []any, []map[string]any:
		return "a list"
	}
	return "a date or time"
}
