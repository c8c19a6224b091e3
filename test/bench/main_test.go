package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestAnInvalidArgumentIsNamed(t *testing.T) {
	for argument, want := range map[string]string{
		"signal": `unexpected argument "signal" (use -run to choose scenarios)`,
		"-run=(": "-run: error parsing regexp: missing closing ): `(`",
	} {
		err := run(t.Context(), []string{argument})
		require.ErrorAs(t, err, new(exit.UsageError))
		require.EqualError(t, err, want)
	}
}
