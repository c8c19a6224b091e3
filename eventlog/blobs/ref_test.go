package blobs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
)

const digits = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"

func TestAReferenceHasOneForm(t *testing.T) {
	ref, err := blobs.ParseRef("sha256/" + digits)
	require.NoError(t, err)
	require.EqualValues(t, "sha256/"+digits, ref)

	for name, text := range map[string]string{
		"nothing":            "",
		"no digits":          "sha256/",
		"digits alone":       digits,
		"another hash":       "sha512/" + digits,
		"upper case":         "sha256/" + strings.ToUpper(digits),
		"a digit too few":    "sha256/" + digits[1:],
		"a digit too many":   "sha256/0" + digits,
		"no hex digits":      "sha256/" + strings.Repeat("g", 64),
		"a way out":          "sha256/../../" + digits[6:],
		"space behind it":    "sha256/" + digits + " ",
		"another separator":  "sha256:" + digits,
		"a megabyte of text": strings.Repeat("x", 1<<20),
	} {
		t.Run(name+" is none", func(t *testing.T) {
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
