package natsserver

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Token returns the token in a file, which only its owner may read. If the file does not exist, Token writes a new
// token of 256 random bits. The caller excludes other processes, as with a lock on the directory.
func Token(file string) (string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return newToken(file)
	}
	if err != nil {
		return "", fmt.Errorf("read NATS token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("read NATS token: %s is not one line (delete the file to make a new token)", file)
	}
	if err := os.Chmod(file, 0o600); err != nil { // a copy of the directory may have another mode
		return "", fmt.Errorf("protect NATS token: %w", err)
	}
	return token, nil
}

func newToken(file string) (token string, err error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	token = hex.EncodeToString(random)
	temp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // mode 0600
	if err == nil {
		defer os.Remove(temp.Name()) // fails after the rename
		_, err = temp.WriteString(token + "\n")
		err = errors.Join(err, temp.Sync(), temp.Close())
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return "", fmt.Errorf("write NATS token: %w", err)
	}
	return token, nil
}
