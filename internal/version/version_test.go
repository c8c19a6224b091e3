package version

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVersionNamesTheCommit(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for _, tt := range []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{"no repository", nil, Version},
		{"a commit", []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "false"}}, Version + " (0123456789ab)"},
		{"changes", []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "true"}}, Version + " (0123456789ab, modified)"},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, describe(tt.settings)) })
	}
}

func TestTheChangelogDescribesTheVersion(t *testing.T) {
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	heading := Version
	if strings.HasSuffix(Version, "-dev") {
		heading = "Unreleased"
	}
	require.Regexp(t, `(?m)^## \[`+heading+`\]`, string(changelog))
}
