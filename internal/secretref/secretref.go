// Package secretref reads the secrets to which configuration refers: env:NAME or file:/absolute/path.
package secretref

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// MaxBytes bounds the size of a file.
const MaxBytes = 64 << 10

// Want describes references in errors.
const Want = "want env:NAME or file:/absolute/path (where the worker finds the secret, never the secret itself)"

// IsRef reports whether a text is a reference.
func IsRef(text string) bool { return text != "" && event.ValidateAPIKeyRef(text) == nil }

// Read returns the secret without white space at its ends. An error contains the reference, unless it is invalid, but never
// the secret. readFile may be nil.
func Read(ref string, getenv func(string) string, readFile func(string) ([]byte, error)) (string, error) {
	if !IsRef(ref) {
		return "", errors.New(Want)
	}
	kind, place, _ := strings.Cut(ref, ":")
	var secret string
	if kind == "env" {
		secret = getenv(place)
	} else {
		if readFile == nil {
			readFile = readBounded
		}
		data, err := readFile(place)
		if err != nil {
			return "", fmt.Errorf("cannot read %s: %w", place, reasonOf(err))
		}
		secret = string(data)
	}
	if secret = strings.TrimSpace(secret); secret == "" {
		return "", fmt.Errorf("%s is empty or not set", ref)
	}
	return secret, nil
}

func readBounded(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if len(data) > MaxBytes {
		err = cmp.Or(err, fmt.Errorf("more than %d bytes", MaxBytes))
	}
	return data, err
}

// reasonOf returns why a file could not be read, without its path.
func reasonOf(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return errors.New(event.Redact(err.Error(), 200))
}
