package blobs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "gocloud.dev/blob/azureblob"
	_ "gocloud.dev/blob/gcsblob"
	_ "gocloud.dev/blob/s3blob"

	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
)

func TestOpenCreatesTheFolderOfTheURL(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, tc := range map[string]struct{ url, folder string }{
		"absolute":                   {"file://" + filepath.ToSlash(dir) + "/a/b", "a/b"},
		"on this machine":            {"file://localhost" + filepath.ToSlash(dir) + "/c", "c"},
		"relative":                   {"file://./d/e", "d/e"},
		"relative, over the parent":  {"file://./../" + filepath.Base(dir) + "/f", "f"},
		"with escaped characters":    {"file://./g%20h%3F%23", "g h?#"},
		"with a slash at the end":    {"file://./i/", "i"},
		"with a name like a drive's": {"file://./j/C:", "j/C:"},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t, tc.url)
			_, err := store.Put(t.Context(), []byte("hello"))
			require.NoError(t, err)
			info, err := os.Stat(filepath.Join(dir, tc.folder))
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, "conversations are private")
			there, err := filepath.Glob(filepath.Join(dir, tc.folder, "*", "*", "*"))
			require.NoError(t, err)
			require.Equal(t, []string{filepath.Join(dir, tc.folder, "default", "sha256", digits)}, there, "the folder contains nothing else")
		})
	}
}

func TestOpenExistingCreatesNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	url := "file://" + filepath.ToSlash(dir)
	_, err := blobs.OpenExisting(t.Context(), url, "default")
	require.EqualError(t, err, `open blob store "`+url+`": the folder does not exist (check the URL; the first worker creates the folder)`)
	require.NoDirExists(t, dir)
	id, err := open(t, url).Identity(t.Context())
	require.NoError(t, err)
	existing, err := blobs.OpenExisting(t.Context(), url, "default")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, existing.Close()) })
	got, err := existing.ReadIdentity(t.Context())
	require.NoError(t, err)
	require.Equal(t, id, got)
}

func TestOpenRejectsInvalidURLs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, tc := range []struct{ name, url, want string }{
		{"an empty URL", "", `open blob store "": the scheme is missing; want file:///absolute/folder, file://./relative/folder, ` +
			`or a bucket like s3://bucket; the schemes of this program are azblob, file, gs, mem, s3`},
		{"a path", "/var/lib/blobs", `"/var/lib/blobs": the scheme is missing; want file:///absolute/folder`},
		{"another scheme", "ftp://host/folder", `unknown scheme "ftp"; want file:///absolute/folder`},
		{"a Windows path", `C:\data`, `unknown scheme "c"`},
		{"a Windows path after two slashes", `file://C:\data`, "malformed URL"},
		{"a drive after two slashes", "file://C:/data", "no folder after file://; want file:///absolute/folder"},
		{"a drive", "file:///C:/data", "drive letters exist only on Windows"},
		{"backslashes", `file:///var\lib`, `write \ as /`},
		{"two slashes missing", "file:data", "no folder after file://"},
		{"one slash missing", "file://data/blobs", "no folder after file://"},
		{"no folder", "file://", "the folder is missing"},
		{"the root", "file:///", "the folder is missing"},
		{"the working directory", "file://./.", "the folder is missing"},
		{"a folder with parameters", "file:///var/blobs?metadata=x", "unsupported value for query parameter 'metadata'"},
		{"a folder with an unknown parameter", "file:///var/blobs?prefix=x", "invalid query parameter \"prefix\""},
		{"a folder with a fragment", "file:///var/blobs#1", "fragments are unsupported"},
		{"a file", "file://" + filepath.ToSlash(file), "is not a directory"},
		{"a folder in a file", "file://" + filepath.ToSlash(file) + "/blobs", "not a directory"},
		{"no bucket", "s3://", "the bucket is missing; want s3://bucket"},
		{"a bucket with a path", "gs://bucket/a/b", "a bucket has no path; want the parameter prefix=a/b/"},
		{"credentials", "s3://AKIA0123456789ABCDEF:s3cr3t@bucket", "set credentials in the environment"},
		{"credentials with a slash", "s3://AKIA0123456789ABCDEF:s3/cr3t@bucket", "malformed URL"},
		{"a secret parameter", "s3://bucket?secret=s3cr3t", `unknown query parameter "secret"`},
		{"a signature", "azblob://container?sig=s3cr3t", `unknown query parameter "sig"`},
		{"another signature", "gs://bucket?sig=s3cr3t", `invalid query parameter "sig"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := blobs.Open(t.Context(), tc.url, "default")
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "cr3t")
		})
	}
}

func TestOpenSupportsClouds(t *testing.T) {
	for _, url := range []string{
		"s3://bucket?region=eu-west-1&prefix=chronicle/",
		"s3://bucket?region=us-east-1&endpoint=http://127.0.0.1:9000&use_path_style=true",
		"gs://bucket?access_id=-",
		"azblob://container?storage_account=account",
		"mem://",
	} {
		t.Run(url, func(t *testing.T) { open(t, url) })
	}
}

// open opens a store until the end of the test.
func open(t testing.TB, url string) *blobs.Store {
	t.Helper()
	store, err := blobs.Open(t.Context(), url, "default")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}
