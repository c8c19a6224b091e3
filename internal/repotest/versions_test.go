package repotest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The first make run compiles a module once if the product and the dev server require the same
// version.
func TestTheDevServerSharesModuleVersionsWithTheProduct(t *testing.T) {
	required := func(mod string) map[string]string {
		versions := map[string]string{}
		for _, match := range regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)`).FindAllStringSubmatch(read(t, mod), -1) {
			versions[match[1]] = match[2]
		}
		require.NotEmpty(t, versions)
		return versions
	}
	product, server := required("go.mod"), required("tools/temporal/go.mod")
	for _, module := range slices.Sorted(maps.Keys(server)) {
		version, isShared := product[module]
		switch {
		case !isShared:
		case strings.HasPrefix(module, "go.temporal.io/"), module == "github.com/nexus-rpc/sdk-go":
			// The server implements the API of its own version.
		default:
			require.Equal(t, version, server[module], "%s: in tools/temporal run go get %[1]s@%s", module, version)
		}
	}
}
