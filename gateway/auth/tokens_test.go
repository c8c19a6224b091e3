package auth_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

var ann = auth.Identity{Subject: "ann", Tenant: "acme", Roles: []auth.Role{auth.RoleWrite, auth.RoleApprove}}

func newService(t *testing.T, options auth.Options) *auth.Service {
	t.Helper()
	service, err := auth.New(options)
	require.NoError(t, err)
	return service
}

func withTokens(t *testing.T, file auth.TokenFile) *auth.Service {
	return newService(t, auth.Options{Tokens: auth.OpenTokens(file, slog.New(slog.DiscardHandler))})
}

func tokenFile(t *testing.T) auth.TokenFile {
	return auth.TokenFile(filepath.Join(t.TempDir(), "state", "tokens.jsonl"))
}

func create(t *testing.T, file auth.TokenFile, identity auth.Identity, expires time.Duration) (token string, record auth.Token) {
	t.Helper()
	token, record, err := file.Create(identity, expires)
	require.NoError(t, err)
	return token, record
}

func request(header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/contexts", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func withBearer(token string) *http.Request { return request("Authorization", "Bearer "+token) }

func TestATokenAuthenticatesUntilItIsRevoked(t *testing.T) {
	file := tokenFile(t)
	service := withTokens(t, file)
	token, record := create(t, file, ann, 0)
	other, _ := create(t, file, auth.Identity{Subject: "bob", Roles: []auth.Role{auth.RoleRead}}, time.Hour)

	got, err := service.Authenticate(withBearer(token))
	require.NoError(t, err)
	want := ann
	want.Token = record.ID
	require.Equal(t, want, got)
	got, err = service.Authenticate(request("Authorization", "bearer   "+other))
	require.NoError(t, err)
	require.Equal(t, "bob", got.Subject)

	require.NoError(t, file.Revoke(record.ID))
	_, err = service.Authenticate(withBearer(token))
	require.ErrorIs(t, err, auth.ErrUnauthenticated)
	_, err = service.Authenticate(withBearer(other))
	require.NoError(t, err)
	require.ErrorIs(t, file.Revoke(record.ID), auth.ErrNoToken)
}

func TestATokenExpires(t *testing.T) {
	file := tokenFile(t)
	service := withTokens(t, file)
	token, _ := create(t, file, ann, -time.Second)
	_, err := service.Authenticate(withBearer(token))
	require.ErrorIs(t, err, auth.ErrUnauthenticated)
	require.ErrorContains(t, err, "expired")
}

func TestOtherTextsAreNoTokens(t *testing.T) {
	file := tokenFile(t)
	service := withTokens(t, file)
	token, record := create(t, file, ann, 0)
	last := "A"
	if strings.HasSuffix(token, last) {
		last = "B"
	}
	for _, text := range []string{
		"", "x", "chr_", "chr_" + record.ID, "chr_" + record.ID + "_", token[:len(token)-1], token[:len(token)-1] + last, token + "A",
		record.ID, record.Hash, "chr_" + record.ID + "_" + record.Hash, strings.ToLower(token), strings.TrimPrefix(token, "chr_"), "chr__",
	} {
		_, err := service.Authenticate(withBearer(text))
		require.ErrorIs(t, err, auth.ErrUnauthenticated, text)
		require.NotContains(t, err.Error(), token)
	}
	for _, r := range []*http.Request{request(), request("Authorization", token), request("Authorization", "Basic "+token), request("Cookie", "chronicle-session="+token)} {
		_, err := service.Authenticate(r)
		require.ErrorIs(t, err, auth.ErrUnauthenticated, r.Header)
	}
}

func TestATokenIsStoredAsAHashThatOnlyTheOwnerReads(t *testing.T) {
	file := tokenFile(t)
	token, record := create(t, file, ann, time.Hour)
	require.Regexp(t, `^chr_[a-z2-7]{8}_[A-Z2-7]{52}$`, token)
	content, err := os.ReadFile(string(file))
	require.NoError(t, err)
	require.NotContains(t, string(content), token[len("chr_")+len(record.ID)+1:])
	require.NotContains(t, event.Redact("the token "+token+" leaked", 0), token[len("chr_")+1:])
	info, err := os.Stat(string(file))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	listed, err := file.List()
	require.NoError(t, err)
	require.Equal(t, []auth.Token{record}, listed)
	require.Equal(t, record.Created.Add(time.Hour), *record.Expires)
}

func TestAFileThatHasNoUsableLineIsNoTokenFile(t *testing.T) {
	file := tokenFile(t)
	require.ErrorIs(t, file.Check(), fs.ErrNotExist)
	_, record := create(t, file, ann, 0)
	require.NoError(t, file.Check())
	valid, err := os.ReadFile(string(file))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(string(file), append([]byte("garbage\n"), valid...), 0o600))
	require.NoError(t, file.Check(), "one valid line")
	require.NoError(t, os.WriteFile(string(file), []byte("garbage\nmore\n"), 0o600))
	require.EqualError(t, file.Check(), "no valid token: line 1: want the JSON of a token, as starter token create writes it")

	require.NoError(t, os.WriteFile(string(file), valid, 0o600))
	require.NoError(t, file.Revoke(record.ID))
	require.NoError(t, file.Check(), "each token was revoked")
}

func TestInvalidTokensAreNotCreated(t *testing.T) {
	file := tokenFile(t)
	for want, identity := range map[string]auth.Identity{
		"subject": {Roles: ann.Roles},
		"text":    {Subject: "a\nb", Roles: ann.Roles},
		"tenant":  {Subject: "ann", Tenant: "a/b", Roles: ann.Roles},
		"missing": {Subject: "ann"},
		"owner":   {Subject: "ann", Roles: []auth.Role{"owner"}},
	} {
		_, _, err := file.Create(identity, 0)
		require.ErrorContains(t, err, want)
	}
	require.NoFileExists(t, string(file))
}

func TestMalformedLinesAreIgnoredAndKept(t *testing.T) {
	file := tokenFile(t)
	token, record := create(t, file, ann, 0)
	content, err := os.ReadFile(string(file))
	require.NoError(t, err)
	edited := "\n{\"id\":\n" + strings.Replace(string(content), record.ID, "other2", 1) + strings.Replace(string(content), `"write"`, `"owner"`, 1) + string(content)
	require.NoError(t, os.WriteFile(string(file), []byte(edited), 0o600))

	var log bytes.Buffer
	service := newService(t, auth.Options{Tokens: auth.OpenTokens(file, slog.New(slog.NewTextHandler(&log, nil)))})
	for range 3 {
		got, err := service.Authenticate(withBearer(token))
		require.NoError(t, err)
		require.Equal(t, record.ID, got.Token)
	}
	require.Equal(t, 1, strings.Count(log.String(), "line 2: want the JSON of a token"), log.String())
	require.Contains(t, log.String(), `line 4: role \"owner\": want read, write, approve or admin`)
	require.ErrorContains(t, file.Revoke(record.ID), "line 2")
	require.NoError(t, os.Remove(string(file)))
	_, err = service.Authenticate(withBearer(token))
	require.ErrorIs(t, err, auth.ErrUnauthenticated, "a missing file has no tokens")
}

const variableFile = "TEST_TOKEN_FILE"

// TestTwoProcessesChangeTheFileAtOnce runs itself as processes that each create tokens and revoke every other.
func TestTwoProcessesChangeTheFileAtOnce(t *testing.T) {
	const tokens = 20
	if file := auth.TokenFile(os.Getenv(variableFile)); file != "" {
		for i := range tokens {
			_, record := create(t, file, ann, 0)
			if i%2 == 0 {
				require.NoError(t, file.Revoke(record.ID))
			}
		}
		return
	}
	file := tokenFile(t)
	var processes []*exec.Cmd
	for range 2 {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		process.Env = append(os.Environ(), fmt.Sprintf("%s=%s", variableFile, file))
		process.Stdout = new(bytes.Buffer)
		require.NoError(t, process.Start())
		processes = append(processes, process)
	}
	for _, process := range processes {
		require.NoError(t, process.Wait(), process.Stdout)
	}
	listed, err := file.List()
	require.NoError(t, err)
	require.Len(t, listed, tokens)
}

func TestALinkToTheFileIsFollowed(t *testing.T) {
	dir := t.TempDir()
	file, link := auth.TokenFile(filepath.Join(dir, "state", "tokens.jsonl")), auth.TokenFile(filepath.Join(dir, "tokens.jsonl"))
	_, record := create(t, file, ann, 0)
	require.NoError(t, os.Symlink(filepath.Join("state", "tokens.jsonl"), string(link)))
	require.NoError(t, link.Revoke(record.ID))
	info, err := os.Lstat(string(link))
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type())
	listed, err := file.List()
	require.NoError(t, err)
	require.Empty(t, listed, "a gateway that reads the file itself")

	require.NoError(t, os.Remove(string(file)))
	_, _, err = link.Create(ann, 0)
	require.ErrorIs(t, err, fs.ErrNotExist, "the file may be on a volume that is not mounted")
	require.NoFileExists(t, string(file))
}

func TestAnotherUserLeavesTheFileToItsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change files of others")
	}
	file := auth.TokenFile(filepath.Join(t.TempDir(), "tokens.jsonl"))
	_, record, err := file.Create(ann, 0)
	require.NoError(t, err)
	require.NoError(t, os.Chown(string(file), 1234, 1234))
	require.NoError(t, file.Revoke(record.ID))
	info, err := os.Stat(string(file))
	require.NoError(t, err)
	require.EqualValues(t, 1234, info.Sys().(*syscall.Stat_t).Uid, "the gateway can still read it")
	require.Equal(t, os.FileMode(0o600), info.Mode())
}
