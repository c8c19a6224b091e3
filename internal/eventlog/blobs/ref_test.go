package blobs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

const digits = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"

func TestParseRefAcceptsOneSpelling(t *testing.T) {
	ref, err := blobs.ParseRef("sha256/" + digits)
	require.NoError(t, err)
	require.EqualValues(t, "sha256/"+digits, ref)

	for name, text := range map[string]string{
		"empty":              "",
		"no digits":          "sha256/",
		"no prefix":          digits,
		"another hash":       "sha512/" + digits,
		"upper case":         "sha256/" + strings.ToUpper(digits),
		"one digit missing":  "sha256/" + digits[1:],
		"one extra digit":    "sha256/0" + digits,
		"no hex digits":      "sha256/" + strings.Repeat("g", 64),
		"path traversal":     "sha256/../../" + digits[6:],
		"trailing space":     "sha256/" + digits + " ",
		"another separator":  "sha256:" + digits,
		"a megabyte of text": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := blobs.ParseRef(text)
			require.ErrorContains(t, err, "want sha256/ and 64 of 0-9 a-f")
			require.Less(t, len(err.Error()), 300)

			quoted, err := json.Marshal(text)
			require.NoError(t, err)
			var ref blobs.Ref
			require.ErrorContains(t, json.Unmarshal(quoted, &ref), "want sha256/")
		})
	}
}
