package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/exit"
)

func TestTokensAreMadeListedAndRevoked(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(args ...string) outcome {
		t.Helper()
		return starter(t, newFake(t), "", append([]string{"token"}, args...)...)
	}
	created := run("create", "--subject", "ann", "--role", "write", "--role", "approve", "--expires", "720h")
	require.Zero(t, created.code, created.errOut)
	token := strings.TrimSpace(created.out)
	require.Regexp(t, `^chr_[a-z2-7]{8}_[A-Z2-7]{52}$`, token, "alone, so that a script can store it")
	id := strings.Split(token, "_")[1]
	require.Contains(t, created.errOut, "token "+id+" of ann: expires ")
	require.Contains(t, created.errOut, "it is not shown again")

	var other struct {
		Token, ID, Subject, Tenant string
		Roles                      []string
		Created                    time.Time
		Expires                    *time.Time
	}
	got := run("create", "--subject", "ci", "--tenant", "acme", "--role", "admin", "--json")
	require.NoError(t, json.Unmarshal([]byte(got.out), &other))
	require.Equal(t, []any{"ci", "acme", []string{"admin"}}, []any{other.Subject, other.Tenant, other.Roles})
	require.Nil(t, other.Expires)
	require.Contains(t, other.Token, other.ID)

	listed := run("list").out
	require.Regexp(t, `^ID +SUBJECT +TENANT +ROLES +CREATED +VALIDITY\n`+id+` +ann +write,approve +\S+ \S+ +expires \S+ \S+ UTC\n`+other.ID+` +ci +acme +admin +\S+ \S+ +never expires\n$`, listed)
	require.NotContains(t, listed+run("list", "--json").out, token[len("chr_")+len(id)+1:])

	require.Zero(t, run("revoke", id).code)
	require.NotContains(t, run("list").out, id)
	require.Equal(t, exit.Failure, run("revoke", id).code)
	content, err := os.ReadFile(".chronicle/tokens.jsonl")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(content), "\n"))
}

func TestTheFileOfTokensIsASetting(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("chronicle.toml", []byte("[gateway]\ntokens = \"shared.jsonl\"\n"), 0o600))
	require.Zero(t, starter(t, newFake(t), "", "token", "create", "--subject", "ann", "--role", "read", "--config", "chronicle.toml").code)
	require.FileExists(t, "shared.jsonl")
	require.Contains(t, starter(t, newFake(t), "", "token", "list", "--tokens", "shared.jsonl").out, "ann")
}
