package reload_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/reload"
)

func TestAValueFollowsItsFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(file, text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	value := reload.New(func(contents [][]byte) (string, error) {
		if string(contents[0]) == "bad" {
			return "", errors.New("a is bad")
		}
		return string(contents[0]) + "+" + string(contents[1]), nil
	}, a, b)
	get := func() string {
		t.Helper()
		got, err := value.Get()
		require.NoError(t, err)
		return got
	}
	require.Equal(t, "+", get(), "both are missing")
	write(a, "1")
	write(b, "2")
	require.Equal(t, "1+2", get())
	write(b, "3") // within the granularity of modification times, and of the same size
	require.Equal(t, "1+3", get())

	write(a, "bad")
	got, err := value.Get()
	require.EqualError(t, err, "a is bad")
	require.Equal(t, "1+3", got, "the last valid value")
	require.Equal(t, "1+3", get(), "the error is reported once")
	require.NoError(t, os.Remove(a))
	require.Equal(t, "+3", get())
	write(a, "bad")
	_, err = value.Get()
	require.EqualError(t, err, "a is bad", "a new failure is reported")
}

func TestUnchangedFilesAreNotParsedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(file, []byte("1"), 0o600))
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(file, past, past))
	parses := 0
	value := reload.New(func([][]byte) (int, error) { parses++; return parses, nil }, file)
	for range 3 {
		got, err := value.Get()
		require.NoError(t, err)
		require.Equal(t, 1, got)
	}
	recent := time.Now()
	require.NoError(t, os.Chtimes(file, recent, recent))
	got, err := value.Get()
	require.NoError(t, err)
	require.Equal(t, 1, got, "the content is the same")
	next := file + ".next"
	require.NoError(t, os.WriteFile(next, []byte("2"), 0o600))
	require.NoError(t, os.Chtimes(next, past, past))
	require.NoError(t, os.Rename(next, file))
	got, err = value.Get()
	require.NoError(t, err)
	require.Equal(t, 2, got, "another file of the same size and time")
}
