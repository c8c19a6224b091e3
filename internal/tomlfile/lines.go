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

// Of returns the line of a key, counted from 1. It returns 0 if the text does not contain the key, or
// only in [[tables]].
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
		table = nil
		if l.meta.PrimitiveDecode(value, &table) != nil {
			return 0
		}
	}
	return 0
}

// lineOf fails to decode the value: the error has its position.
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
