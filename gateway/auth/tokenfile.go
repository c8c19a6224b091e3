package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// TokenFile is the path of a file with a [Token] in JSON per line. Only its owner may read it. Several processes may
// change it at once.
type TokenFile string

// ErrNoToken means that a file has no token with an id.
var ErrNoToken = errors.New("no such token")

// Create adds a token for an identity, which expires after a duration; 0: never. The token itself is not stored.
func (f TokenFile) Create(identity Identity, expires time.Duration) (token string, record Token, err error) {
	id, token := newToken()
	record = Token{
		ID: id, Hash: hashOf(token), Created: time.Now().UTC().Truncate(time.Second),
		Subject: identity.Subject, Tenant: identity.Tenant, Roles: identity.Roles,
	}
	if expires != 0 {
		at := record.Created.Add(expires)
		record.Expires = &at
	}
	if err := record.check(); err != nil {
		return "", Token{}, err
	}
	err = f.change(func(tokens []Token) ([]Token, error) { return append(tokens, record), nil })
	return token, record, err
}

// List returns the tokens in the order of their creation. A missing file has none.
func (f TokenFile) List() ([]Token, error) {
	data, err := os.ReadFile(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	tokens, err := parseTokens(data)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %s: %w", f, err)
	}
	return tokens, nil
}

// Check returns an error if the file is unreadable, also if it is missing, or if each of its lines is malformed. A file from which
// each token was revoked is valid.
func (f TokenFile) Check() error {
	data, err := os.ReadFile(string(f))
	if err != nil {
		return err
	}
	tokens, err := parseTokens(data)
	if err == nil || len(tokens) > 0 {
		return nil
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("no valid token: %s", first)
}

// Revoke removes a token. The error is [ErrNoToken] if the file does not have it.
func (f TokenFile) Revoke(id string) error {
	return f.change(func(tokens []Token) ([]Token, error) {
		rest := slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.ID == id })
		if len(rest) == len(tokens) {
			return nil, fmt.Errorf("token %q: %w", id, ErrNoToken)
		}
		return rest, nil
	})
}

func (f TokenFile) change(edit func([]Token) ([]Token, error)) error {
	f, err := f.resolve()
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	// A lock on the file itself would not exclude a process that waits for the file which the rename replaces.
	lock, err := os.OpenFile(string(f)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock tokens: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock tokens: %w", err)
	}
	tokens, err := f.List()
	if err != nil {
		return err
	}
	if tokens, err = edit(tokens); err != nil {
		return err
	}
	return f.write(tokens)
}

// resolve follows symbolic links, which the rename would replace. A file that does not exist is itself.
func (f TokenFile) resolve() (TokenFile, error) {
	if _, err := os.Lstat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	path, err := filepath.EvalSymlinks(string(f))
	return TokenFile(path), err
}

func (f TokenFile) write(tokens []Token) error {
	var content bytes.Buffer
	for _, token := range tokens {
		_ = json.NewEncoder(&content).Encode(token) // strings and times
	}
	temp, err := os.CreateTemp(filepath.Dir(string(f)), filepath.Base(string(f))+".*") // mode 0600
	if err == nil {
		defer os.Remove(temp.Name()) // fails after the rename
		_, err = temp.Write(content.Bytes())
		err = errors.Join(err, f.keepOwner(temp), temp.Sync(), temp.Close())
	}
	if err == nil {
		err = os.Rename(temp.Name(), string(f))
	}
	if err == nil {
		err = syncFolder(filepath.Dir(string(f))) // otherwise a revoked token could return after a power failure
	}
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// keepOwner gives a replacement to the owner of the file, so that a gateway still reads it after root has changed it: until it
// does, revoked tokens stay valid.
func (f TokenFile) keepOwner(replacement *os.File) error {
	info, err := os.Stat(string(f))
	if err != nil {
		return nil // there is none, or the rename reports the error
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Getuid() {
		return nil
	}
	return replacement.Chown(int(owner.Uid), int(owner.Gid))
}

// parseTokens returns the valid lines, and the errors of the others.
func parseTokens(data []byte) ([]Token, error) {
	var tokens []Token
	var errs []error
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var token Token
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if decoder.Decode(&token) != nil {
			errs = append(errs, fmt.Errorf("line %d: want the JSON of a token, as starter token create writes it", number))
			continue
		}
		if err := token.check(); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens, errors.Join(errs...)
}

func (t Token) check() error {
	if t.ID == "" || strings.Contains(t.ID, "_") || len(t.Hash) != len(hashOf("")) {
		return errors.New("id or hash is malformed")
	}
	return Identity{Subject: t.Subject, Tenant: t.Tenant, Roles: t.Roles}.Validate()
}
