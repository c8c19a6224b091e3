package preview_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/preview"
)

func TestAPreviewIsTheBeginningOnOneLine(t *testing.T) {
	long := strings.Repeat("é", preview.MaxCharacters)
	for text, want := range map[string]string{
		"":                                 "",
		" \n":                              "",
		" Two\n\n lines\t":                 "Two lines",
		long:                               long,
		long + "é":                         long + "…",
		long[:2*119] + " two":              long[:2*119] + "…",
		"a" + strings.Repeat(" ", 100_000): "a…",
		"a\xff" + "b":                      "ab",
	} {
		require.Equal(t, want, preview.Of(text))
	}
}
