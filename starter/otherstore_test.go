package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

func TestAWrongBlobStoreIsNamed(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "BLOB_URL"} {
		t.Setenv(name, "")
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll(".chronicle/blobs", 0o700))
	run := func(args ...string) string {
		var out, errOut bytes.Buffer
		code := execute(t.Context(), &app{
			streams: streams{in: strings.NewReader(""), out: &out, err: &errOut},
			dial: func(context.Context, client.Config) (contextClient, error) {
				return nil, blobs.OtherStore("namespace default", "A", "B")
			},
		}, args)
		require.Equal(t, 1, code)
		return errOut.String()
	}
	byDefault := run("list")
	require.Regexp(t, `this process uses file:///\S+/\.chronicle/blobs, the default because the working directory has the folder \.chronicle/blobs`, byDefault)
	require.Contains(t, byDefault, "(work in another directory, or set --blob-url to the store of the workers or to none)")
	const withSecret = "file:///srv/blobs?secret_access_key=s3cr3t"
	require.Contains(t, run("list", "--blob-url", withSecret), "this process uses file:///srv/blobs, which is the value of --blob-url\n")
	var line struct{ Error string }
	require.NoError(t, json.Unmarshal([]byte(run("serve", "--listen", "127.0.0.1:0", "--index-dir", t.TempDir(), "--json", "--blob-url", withSecret)), &line))
	require.Contains(t, line.Error, "; this process uses file:///srv/blobs, which is the value of --blob-url")
}
