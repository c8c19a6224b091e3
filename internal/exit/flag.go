package exit

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var flagTypes = map[string]string{
	"bool":        "true or false",
	"string":      "a string",
	"int":         "an integer",
	"int64":       "an integer",
	"float64":     "a number",
	"stringArray": "a list of strings",
	"level":       "debug, info, warn or error",
	"duration":    "a duration like 90s or 12h, in h, m, s and ms",
}

// FlagError is a flag error function for cobra. It says what a flag allows, in place of errors of Go
// packages.
func FlagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag := invalid.GetFlag()
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("--%s %q: out of range", flag.Name, invalid.GetValue())
	}
	return fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), Allowed(flag))
}

// Allowed describes the values of a flag.
func Allowed(flag *pflag.Flag) string {
	return cmp.Or(flagTypes[flag.Value.Type()], flag.Value.Type())
}
