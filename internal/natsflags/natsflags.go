// Package natsflags adds the credentials for NATS to the flags of a command. It is separate
// from package connect so that clients do not depend on a flag library.
package natsflags

import (
	"github.com/spf13/pflag"

	"github.com/seed-9ed7edd4/chronicle/stream"
)

func Add(flags *pflag.FlagSet, auth *stream.Auth) {
	for _, s := range auth.Settings() {
		usage := s.Usage
		if s.Env != "" {
			usage += " (default: $" + s.Env + ")"
		}
		flags.StringVar(s.Value, s.Flag, "", usage)
	}
}
