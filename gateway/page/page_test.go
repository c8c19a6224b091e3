package page_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway/page"
)

// libraries returns the names and versions in the table of lib/README.md.
func libraries(t *testing.T) map[string]string {
	t.Helper()
	readme, err := os.ReadFile("lib/README.md")
	require.NoError(t, err)
	versions := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^\s/]+) \| (\d\S+) \|`).FindAllSubmatch(readme, -1) {
		versions[string(row[1])] = string(row[2])
	}
	return versions
}

func TestThirdPartyNoticesListEveryEmbeddedLibrary(t *testing.T) {
	notices, err := os.ReadFile("../../THIRD_PARTY_NOTICES.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| \[(\S+)\]\(\S+\) \| (\S+) \|`).FindAllSubmatch(notices, -1) {
		listed[string(row[1])] = string(row[2])
	}
	require.Equal(t, libraries(t), listed)
	entries, err := os.ReadDir("lib")
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() {
			require.Contains(t, listed, entry.Name())
			require.Equal(t, http.StatusOK, get(t, "/lib/"+entry.Name()+"/LICENSE", nil).StatusCode)
		}
	}
}

func get(t *testing.T, path string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header = header
	w := httptest.NewRecorder()
	page.Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestThePolicyAllowsOnlyTheScriptsOfThePage(t *testing.T) {
	for _, path := range []string{"/", "/app.js", "/lib/marked/marked.esm.js"} {
		header := get(t, path, nil).Header
		require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "+
			"img-src 'self' data: blob:; media-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'", path)
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", header.Get("Referrer-Policy"), path)
	}
}

func TestFilesHaveTheirMediaType(t *testing.T) {
	for path, want := range map[string]string{
		"/":                             "text/html; charset=utf-8",
		"/style.css":                    "text/css; charset=utf-8",
		"/app.js":                       "text/javascript; charset=utf-8",
		"/lib/fast-json-patch/core.mjs": "text/javascript; charset=utf-8",
		"/lib/dompurify/LICENSE":        "text/plain; charset=utf-8",
		"/icon.svg":                     "image/svg+xml",
	} {
		response := get(t, path, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Equal(t, want, response.Header.Get("Content-Type"), path)
	}
	for _, path := range []string{"/nothing", "/lib", "/lib/", "/page.go"} {
		require.Equal(t, http.StatusNotFound, get(t, path, nil).StatusCode, path)
	}
}

func TestAnUnchangedFileIsNotModified(t *testing.T) {
	tag := get(t, "/app.js", nil).Header.Get("ETag")
	require.NotEqual(t, tag, get(t, "/style.css", nil).Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, get(t, "/app.js", http.Header{"If-None-Match": {tag}}).StatusCode)
}

func TestLibrariesMatchTheirPublishedHashes(t *testing.T) {
	readme, err := os.ReadFile("lib/README.md")
	require.NoError(t, err)
	published := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+) \| ([0-9a-f]{64}) \|$`).FindAllSubmatch(readme, -1) {
		published[string(row[1])] = string(row[2])
	}
	here := map[string]string{}
	for _, pattern := range []string{"lib/*/*.js", "lib/*/*.mjs"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			sum := sha256.Sum256(content)
			here[filepath.ToSlash(path[len("lib/"):])] = hex.EncodeToString(sum[:])
		}
	}
	require.NotEmpty(t, here)
	require.Equal(t, published, here)
}
