package tomlfile

import (
	"errors"

	"github.com/BurntSushi/toml"
)

// Lines finds the lines of keys in a text.
type Lines struct {
	meta toml.MetaData
	root map[string]toml.Primitive
}

// NewLines finds no lines in a malformed text.
func NewLines(text string) *Lines {
	l := &Lines{}
	l.meta, _ = toml.Decode(text, &l.root)
	return l
}

// Of returns the line of a key, counted from 1. It returns 0 if the text does not contain the key, or if
// several [[tables]] have it.
func (l *Lines) Of(key ...string) int {
	table := l.root
	for i, name := range key {
		value, isKnown := table[name]
		if !isKnown {
			return 0
		}
		if i == len(key)-1 {
			return l.lineOf(value)
		}
		table = l.tableWith(value, key[i+1])
	}
	return 0
}

// tableWith returns a table, or the only one of [[tables]] that has a key.
func (l *Lines) tableWith(value toml.Primitive, key string) (table map[string]toml.Primitive) {
	if l.meta.PrimitiveDecode(value, &table) == nil && table != nil {
		return table
	}
	var list []map[string]toml.Primitive
	if l.meta.PrimitiveDecode(value, &list) != nil {
		return nil
	}
	for _, element := range list {
		if _, hasKey := element[key]; hasKey && table != nil {
			return nil
		} else if hasKey {
			table = element
		}
	}
	return table
}

// lineOf makes the decoder fail, because only its errors have a position.
func (l *Lines) lineOf(value toml.Primitive) int {
	var failed toml.ParseError
	if errors.As(l.meta.PrimitiveDecode(value, new(unreadable)), &failed) {
		return failed.Position.Line
	}
	return 0
}

var errUnreadable = errors.New("unreadable")

type unreadable struct{}

func (*unreadable) UnmarshalTOML(any) error { return errUnreadable }
