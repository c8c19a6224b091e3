package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// Markdown returns the rows of a table of settings for the documentation, without the keys in the file,
// which follow from the flags.
func (t *Table) Markdown() string {
	var b strings.Builder
	t.VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		meaning, byDefault, _ := strings.Cut(usage, " (default")
		byDefault = ownVariable.ReplaceAllString(strings.TrimSuffix(strings.TrimLeft(byDefault, ": "), ")"), "")
		if byDefault == "" {
			byDefault = defaultOf(f)
		}
		flag := "--" + f.Name
		if name != "" && f.Value.Type() != "bool" {
			flag += " " + name
		}
		setting := code(flag)
		if variable := t.env[f.Name]; variable != "" {
			setting += ", " + code(variable)
		}
		row(&b, setting, byDefault, meaning)
	})
	for _, v := range t.variables {
		row(&b, code(v.Name), "none", v.Usage)
	}
	return b.String()
}

// ownVariable matches the variable of a flag in its default: the documentation has a column for it.
var ownVariable = regexp.MustCompile(`^(the token in )?\$\w+(, (else )?|$)`)

func row(b *strings.Builder, cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func code(text string) string { return "`" + text + "`" }

func defaultOf(f *pflag.Flag) string {
	switch {
	case f.Value.Type() == "bool" && f.DefValue == "false":
		return "off"
	case f.DefValue == "" || f.DefValue == "[]":
		return "none"
	}
	return f.DefValue
}
