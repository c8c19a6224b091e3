package secretref_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/secretref"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"key": " hunter2\n", "blank": "\n", "long": strings.Repeat("x", secretref.MaxBytes+1)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	getenv := func(name string) string { return map[string]string{"KEY": "hunter2 ", "BLANK": " "}[name] }
	for ref, want := range map[string]string{
		"env:KEY":               "",
		"env:BLANK":             "env:BLANK is empty or not set",
		"env:NONE":              "env:NONE is empty or not set",
		"file:" + dir + "/key":  "",
		"file:" + dir + "/none": "cannot read " + dir + "/none: no such file or directory",
		"file:" + dir + "/long": "cannot read " + dir + "/long: more than 65536 bytes",
		"file:key":              secretref.Want,
		"hunter2":               secretref.Want,
		"":                      secretref.Want,
	} {
		secret, err := secretref.Read(ref, getenv, nil)
		if want == "" {
			require.NoError(t, err, ref)
			require.Equal(t, "hunter2", secret, ref)
		} else {
			require.EqualError(t, err, want, ref)
		}
	}
	_, err := secretref.Read("file:"+dir+"/blank", getenv, nil)
	require.ErrorContains(t, err, "is empty or not set")
}
