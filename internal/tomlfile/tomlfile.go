// Package tomlfile decodes TOML configuration files.
package tomlfile

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// number matches the errors of numbers that Go types cannot represent, and their digits.
var number = regexp.MustCompile(`\S+ is out of (the safe \S+ range|range for \S+)$`)

// Decode decodes text into a struct. Errors name the line or the key, but no value: it may be a
// misplaced secret. The error for a value of the wrong type is an [Error] with its line.
func Decode(text string, into any) (toml.MetaData, error) {
	var tree map[string]any
	_, err := toml.Decode(text, &tree)
	if err == nil {
		if err := check(nil, "", reflect.TypeOf(into).Elem(), tree); err != nil {
			return toml.MetaData{}, &Error{NewLines(text).Of(err.key...), err}
		}
	}
	var meta toml.MetaData
	if err == nil {
		meta, err = toml.Decode(text, into)
	}
	if err != nil {
		// The method Error of the error names the line; its other formats repeat the content of the line.
		err = errors.New(number.ReplaceAllString(strings.TrimPrefix(err.Error(), "toml: "), "the number is out of range"))
	}
	return meta, err
}

// mismatch is a value of the wrong type.
type mismatch struct {
	key               []string // of the value, or of the list that contains it
	path, want, found string
}

func (m *mismatch) Error() string { return fmt.Sprintf("%s: want %s, got %s", m.path, m.want, m.found) }

// check returns the first value whose type differs from that of its field. It ignores unknown keys.
func check(key []string, path string, want reflect.Type, value any) *mismatch {
	switch want.Kind() {
	case reflect.Interface:
		return nil
	case reflect.Pointer:
		return check(key, path, want.Elem(), value)
	case reflect.Struct, reflect.Map:
		table, ok := value.(map[string]any)
		if !ok {
			return &mismatch{key, path, "a table", Kind(value)}
		}
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if of := typeOf(want, name); of != nil {
				within := strings.TrimPrefix(path+"."+quoted(name), ".")
				if err := check(append(slices.Clip(key), name), within, of, table[name]); err != nil {
					return err
				}
			}
		}
		return nil
	case reflect.Slice:
		list := reflect.ValueOf(value)
		isTables := want.Elem().Kind() == reflect.Struct
		switch {
		case isTables && list.Kind() != reflect.Slice:
			return &mismatch{key, path, fmt.Sprintf("tables [[%s]]", path), Kind(value)}
		case list.Kind() != reflect.Slice:
			return &mismatch{key, path, "a list", Kind(value)}
		}
		for i := range list.Len() {
			if err := check(key, fmt.Sprintf("%s[%d]", path, i+1), want.Elem(), list.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	}
	name, kinds := "a string", []reflect.Kind{reflect.String}
	switch want.Kind() {
	case reflect.Bool:
		name, kinds = "true or false", []reflect.Kind{reflect.Bool}
	case reflect.Int, reflect.Int64:
		name, kinds = "an integer", []reflect.Kind{reflect.Int64}
	case reflect.Float64:
		name, kinds = "a number", []reflect.Kind{reflect.Float64, reflect.Int64}
	}
	if !slices.Contains(kinds, reflect.TypeOf(value).Kind()) {
		return &mismatch{key, path, name, Kind(value)}
	}
	return nil
}

// typeOf returns nil for an unknown key of a struct.
func typeOf(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for _, field := range reflect.VisibleFields(t) {
		if field.Tag.Get("toml") == key {
			return field.Type
		}
	}
	return nil
}

var isBare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString

func quoted(key string) string {
	if isBare(key) {
		return key
	}
	return strconv.Quote(key)
}

// Kind describes the type of a decoded value.
func Kind(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a table"
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a floating-point number"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date or time"
	}
	return "a list"
}
