package blobs_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// stderrOf returns what a function writes to stderr.
func stderrOf(t *testing.T, do func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer file.Close()
	stderr := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = stderr }()
	do()
	_, err = file.Seek(0, io.SeekStart)
	require.NoError(t, err)
	written, err := io.ReadAll(file)
	require.NoError(t, err)
	return string(written)
}

// The object was uploaded in parts, so its checksum is not that of its bytes.
func TestTheSDKLogsNoWarningsAboutChecksums(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/bucket/default/name" {
			t.Errorf("unexpected request: %s %s", r.Method, r.URL)
		}
		w.Header().Set("X-Amz-Checksum-Crc32", "AAAAAA==-2")
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	for name, test := range map[string]struct{ parameter, want string }{
		"by default":        {"", ""},
		"when told to warn": {"&response_checksum_validation=when_supported", "Skipped validation of multipart checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			got := stderrOf(t, func() {
				store := open(t, "s3://bucket?region=us-east-1&use_path_style=true&endpoint="+server.URL+test.parameter)
				data, err := store.Read(t.Context(), "name")
				require.NoError(t, err)
				require.Equal(t, "hello", string(data))
			})
			if test.want == "" {
				require.Empty(t, got)
				return
			}
			require.Contains(t, got, test.want)
		})
	}
}
