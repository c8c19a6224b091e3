// Package tomlfile decodes the TOML files of a worker.
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
// misplaced secret.
func Decode(text string, into any) (toml.MetaData, error) {
	var tree map[string]any
	_, err := toml.Decode(text, &tree)
	if err == nil {
		err = check("", reflect.TypeOf(into).Elem(), tree)
	}
	var meta toml.MetaData
	if err == nil {
		meta, err = toml.Decode(text, into)
	}
	if err != nil {
		// Error names the line; other formats of the error repeat the content of the line.
		err = errors.New(number.ReplaceAllString(strings.TrimPrefix(err.Error(), "toml: "), "the number is out of range"))
	}
	return meta, err
}

// check returns an error for the first value whose type differs from that of its field. It ignores
// unknown keys.
func check(path string, want reflect.Type, value any) error {
	switch want.Kind() {
	case reflect.Pointer:
		return check(path, want.Elem(), value)
	case reflect.Struct, reflect.Map:
		table, ok := value.(map[string]any)
		if !ok {
			return mismatch(path, "a table", value)
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			name := strings.TrimPrefix(path+"."+quoted(key), ".")
			if of := typeOf(want, key); of != nil {
				if err := check(name, of, table[key]); err != nil {
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
			return mismatch(path, fmt.Sprintf("tables [[%s]]", path), value)
		case list.Kind() != reflect.Slice:
			return mismatch(path, "a list", value)
		}
		for i := range list.Len() {
			if err := check(fmt.Sprintf("%s[%d]", path, i+1), want.Elem(), list.Index(i).Interface()); err != nil {
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
		return mismatch(path, name, value)
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

func mismatch(path, want string, value any) error {
	found := "a list"
	switch value.(type) {
	case map[string]any:
		found = "a table"
	case string:
		found = "a string"
	case int64:
		found = "an integer"
	case float64:
		found = "a floating-point number"
	case bool:
		found = "true or false"
	case time.Time:
		found = "a date or time"
	}
	return fmt.Errorf("%s: want %s, got %s", path, want, found)
}
