package config

import (
	"fmt"
	"net"
	"reflect"
	"slices"

	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

// VariableFile is the variable of --config.
const VariableFile = "CHRONICLE_CONFIG"

// Config is the configuration of a program.
type Config struct {
	// PrintOnly is --print-config.
	PrintOnly bool
	path      string
	tables    []*Table // of the program
	others    []*Table // of other programs: the file may have their keys, too
	file      *file    // without a path: none
	origins   map[*pflag.Flag]Origin
	values    map[string]string // of flags after Load, by key
	ignored   []string          // flags whose variables and keys have no effect
	omitted   []string          // parts that Print omits
}

// Parts are the top-level keys of a file that workers read from [Config.Text].
var Parts = []string{"price_version", "providers", "budgets", "hooks", "retention"}

// New returns the configuration of a program with the settings in tables. The file may also have the
// settings of other programs.
func New(tables []*Table, others ...*Table) *Config {
	return &Config{tables: tables, others: others, file: &file{}}
}

// AddFlags adds --config and --print-config.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.path, "config", "", "TOML `FILE` with settings, like examples/config/chronicle.toml; flags and environment variables override it (default: $"+VariableFile+", none)")
	flags.BoolVar(&c.PrintOnly, "print-config", false, "print each setting and where its value comes from, without secrets, and exit")
}

// Load reads the file, and sets the flags that are not on the command line from the environment and
// the file, except for the ignored ones. Errors are usage errors.
func (c *Config) Load(getenv func(string) string, ignored ...string) error {
	c.origins, c.values, c.ignored, c.file = map[*pflag.Flag]Origin{}, map[string]string{}, ignored, &file{}
	from := "--config"
	path := c.path
	if path == "" {
		from, path = VariableFile, getenv(VariableFile)
	}
	if path != "" {
		var err error
		if c.file, err = readFile(path); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if err := c.file.settle(slices.Concat(c.tables, c.others)); err != nil {
			return err
		}
	}
	for _, t := range c.tables {
		if err := c.resolve(t, getenv); err != nil {
			return err
		}
	}
	return nil
}

// Reload reads the file again and returns the resulting configuration. The caller passes new tables, in
// the order of those passed to [New].
func (c *Config) Reload(getenv func(string) string, tables ...*Table) (*Config, error) {
	next := New(tables, c.others...)
	next.path = c.path
	for i, t := range tables {
		c.tables[i].VisitAll(func(f *pflag.Flag) {
			if f.Changed {
				copyValue(t.Lookup(f.Name), f)
			}
		})
	}
	return next, next.Load(getenv, c.ignored...)
}

func copyValue(to, from *pflag.Flag) {
	to.Changed = true
	if list, ok := to.Value.(pflag.SliceValue); ok {
		_ = list.Replace(from.Value.(pflag.SliceValue).GetSlice()) // any string is valid
		return
	}
	_ = to.Value.Set(from.Value.String()) // it was valid
}

// resolve sets the flags of a table.
func (c *Config) resolve(t *Table, getenv func(string) string) (err error) {
	best := c.origin(t, getenv)
	t.VisitAll(func(f *pflag.Flag) {
		origin := Origin{}
		value, isInFile := c.file.values[t.Key(f.Name)]
		variable := t.env[f.Name]
		isAlternative := t.alternatives[f.Name]
		switch {
		case err != nil:
		case f.Changed:
			origin.kind = byFlag
		case slices.Contains(c.ignored, f.Name):
		case variable != "" && getenv(variable) != "" && !(isAlternative && best > byVariable):
			origin = Origin{kind: byVariable, name: variable}
			if f.Value.Set(getenv(variable)) != nil {
				err = fmt.Errorf("%s %q: want %s", variable, event.Redact(getenv(variable), maxShown), exit.Allowed(f))
			}
		case isInFile && !(isAlternative && best > byFile):
			origin = Origin{kind: byFile, name: c.file.path}
			err = setValue(f, value)
		}
		c.origins[f], c.values[t.Key(f.Name)] = origin, f.Value.String()
	})
	if err != nil {
		return err
	}
	for _, v := range t.variables {
		if v.value != nil && best <= byVariable && !slices.Contains(c.ignored, v.Name) {
			*v.value = getenv(v.Name)
		}
	}
	return nil
}

// origin returns byFlag or byVariable if the command line or the environment sets one of the
// alternatives of a table, else byDefault.
func (c *Config) origin(t *Table, getenv func(string) string) kind {
	best := byDefault
	for flag := range t.alternatives {
		switch {
		case t.Lookup(flag).Changed:
			return byFlag
		case t.env[flag] != "" && getenv(t.env[flag]) != "":
			best = byVariable
		}
	}
	for _, v := range t.variables {
		if v.value != nil && getenv(v.Name) != "" {
			best = byVariable
		}
	}
	return best
}

// Label names a setting and the place of its value in an error: --ui-port, NATS_URL or
// chronicle.toml: worker.ui_port.
func (c *Config) Label(flag string) string {
	for _, t := range c.tables {
		f := t.Lookup(flag)
		if f == nil {
			continue
		}
		switch o := c.origins[f]; o.kind {
		case byVariable:
			return o.name
		case byFile:
			return fmt.Sprintf("%s: %s", o, t.Key(flag))
		}
	}
	return "--" + flag
}

// CheckListen returns an error unless the value of a flag is HOST:PORT.
func (c *Config) CheckListen(flag, address, example string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%s %q: want HOST:PORT, like %s", c.Label(flag), event.Redact(address, maxShown), example)
	}
	return nil
}

// IsGiven reports whether the command line, the environment or the file sets a flag.
func (c *Config) IsGiven(flag string) bool {
	for _, t := range c.tables {
		if f := t.Lookup(flag); f != nil {
			return c.origins[f].kind != byDefault
		}
	}
	return false
}

// Text returns the path and the text of the file; empty without one.
func (c *Config) Text() (path, text string) {
	return c.file.path, c.file.text
}

// CheckOnce returns an error if the file sets a flag that names another file, such as worker.hooks, and
// also has one of the keys that the other file has.
func (c *Config) CheckOnce(flag string, keys ...string) error {
	if c.Label(flag) == "--"+flag {
		return nil
	}
	for _, key := range keys {
		if _, isInFile := c.file.tree[key]; isInFile {
			return fmt.Errorf("%s: the file also has %s (want one of them)", c.Label(flag), key)
		}
	}
	return nil
}

// Differences returns the keys, sorted, whose values differ between two configurations of a program.
func (c *Config) Differences(other *Config) (keys []string) {
	for key, value := range c.values {
		if other.values[key] != value {
			keys = append(keys, key)
		}
	}
	for _, part := range Parts {
		if !reflect.DeepEqual(c.file.tree[part], other.file.tree[part]) {
			keys = append(keys, part)
		}
	}
	slices.Sort(keys)
	return keys
}

// Origin is the place of a value.
type Origin struct {
	kind kind
	name string // of the variable or the file
}

type kind int

const (
	byDefault kind = iota
	byFile
	byVariable
	byFlag
)

// String describes the place: flag, env NAME, FILE or default.
func (o Origin) String() string {
	switch o.kind {
	case byFlag:
		return "flag"
	case byVariable:
		return "env " + o.name
	case byFile:
		return o.name
	}
	return "default"
}
