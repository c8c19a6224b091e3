// Package config has the settings of all programs, and finds their values: flags override
// environment variables, which override the file of --config, which overrides the defaults.
//
// The flags are the only list of the settings (settings.go). The tables of the file, the output of
// --print-config and the table in docs/operations.md follow from them.
package config
