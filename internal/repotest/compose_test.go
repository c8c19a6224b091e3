package repotest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

const composeFile = "docker-compose.yml"

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}

// found returns the groups of all matches, at least one.
func found(t *testing.T, pattern, file string) [][]string {
	t.Helper()
	matches := regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(read(t, file), -1)
	require.NotEmpty(t, matches, "%s has no %s", file, pattern)
	return matches
}

func TestComposePublishesPortsOnLoopbackOnly(t *testing.T) {
	for _, port := range found(t, `^\s+- "(\S+:\d+:\d+|\d+:\d+|\d+)"$`, composeFile) {
		require.True(t, strings.HasPrefix(port[1], "127.0.0.1:"), port[1])
	}
}

func TestComposeRunsTheTestedVersions(t *testing.T) {
	required := func(mod, module string) string {
		return found(t, `^\s+`+regexp.QuoteMeta(module)+` v(\S+)`, mod)[0][1]
	}
	image := func(name string) string { return found(t, `image: `+name+`:v?([\d.]+)`, composeFile)[0][1] }
	require.Equal(t, required("build/server/go.mod", "go.temporal.io/server"), image("temporalio/server"))
	require.Equal(t, required("build/s3/go.mod", "github.com/versity/versitygw"), image("versity/versitygw"))
	// The same minor version: images of NATS follow its releases late.
	minor := func(version string) string { return version[:strings.LastIndex(version, ".")] }
	nats := required("go.mod", "github.com/nats-io/nats-server/v2")
	require.Equal(t, minor(nats), minor(image("nats")))
	require.Equal(t, nats, required("build/server/go.mod", "github.com/nats-io/nats-server/v2"))
	// The module v0.315.0 is Prometheus v3.15.0.
	module := required("build/prometheus/go.mod", "github.com/prometheus/prometheus")
	require.Equal(t, strings.Replace(module, "0.3", "3.", 1), image("prom/prometheus"))
}

func TestDocumentationNamesTheVariablesOfCompose(t *testing.T) {
	example, operations := read(t, ".env.example"), read(t, "docs/operations.md")
	for _, variable := range found(t, `\$\{(\w+)`, composeFile) {
		require.Contains(t, example, "\n"+variable[1]+"=")
		require.Contains(t, operations, "`"+variable[1])
	}
}

func TestComposeMountsExistingFiles(t *testing.T) {
	for _, file := range found(t, `^\s+file: (\S+)$`, composeFile) {
		require.FileExists(t, file[1])
	}
}

func TestProductionAndDevServerShareDynamicConfig(t *testing.T) {
	settings := read(t, "deploy/dynamicconfig.yaml")
	for key, value := range devserver.Tuning {
		require.Contains(t, settings, "\n"+key+":\n  - value: "+strings.Trim(value, `"`)+"\n")
	}
	require.Equal(t, "87600h", found(t, `^\s+RETENTION: (\S+)`, composeFile)[0][1])
	require.EqualValues(t, 87600, devserver.Retention.Hours())
}
