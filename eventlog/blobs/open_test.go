package blobs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	_ "github.com/seed-9ed7edd4/chronicle/eventlog/blobs/clouds"
)

func TestAFolderIsMadeWhereTheURLSays(t *testing.T) {
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
			require.Equal(t, []string{filepath.Join(dir, tc.folder, "default", "sha256", digits)}, there, "and nothing beside it")
		})
	}
}

func TestAURLThatSaysNoStoreIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, tc := range []struct{ name, url, want string }{
		{"nothing", "", `blob store "": the scheme is missing; want file:///absolute/folder, file://./relative/folder, ` +
			`or a bucket like s3://bucket; the schemes of this program are azblob, file, gs, mem, s3`},
		{"a path", "/var/lib/blobs", `"/var/lib/blobs": the scheme is missing; want file:///absolute/folder`},
		{"another scheme", "ftp://host/folder", `unknown scheme "ftp"; want file:///absolute/folder`},
		{"a path of Windows", `C:\data`, `unknown scheme "c"`},
		{"a path of Windows behind two slashes", `file://C:\data`, "that is no URL"},
		{"a drive behind two slashes", "file://C:/data", "the folder does not begin behind file://; want file:///absolute/folder"},
		{"a drive", "file:///C:/data", "this machine has no drives"},
		{"backslashes", `file:///var\lib`, `a \ is written as /`},
		{"two slashes too few", "file:data", "the folder does not begin behind file://"},
		{"a slash too few", "file://data/blobs", "the folder does not begin behind file://"},
		{"no folder", "file://", "there is no folder in it"},
		{"the root", "file:///", "there is no folder in it"},
		{"the working directory", "file://./.", "there is no folder in it"},
		{"a folder with parameters", "file:///var/blobs?metadata=x", "unsupported value for query parameter 'metadata'"},
		{"a folder with an unknown parameter", "file:///var/blobs?prefix=x", "invalid query parameter \"prefix\""},
		{"a folder with a fragment", "file:///var/blobs#1", "a folder has no fragment"},
		{"a file", "file://" + filepath.ToSlash(file), "is not a directory"},
		{"a folder in a file", "file://" + filepath.ToSlash(file) + "/blobs", "not a directory"},
		{"no bucket", "s3://", "the bucket is missing; want s3://bucket"},
		{"a bucket with a path", "gs://bucket/a/b", "a bucket has no path; want the parameter prefix=a/b/"},
		{"credentials", "s3://AKIA0123456789ABCDEF:s3cr3t@bucket", "credentials come from the environment"},
		{"credentials with a slash", "s3://AKIA0123456789ABCDEF:s3/cr3t@bucket", "that is no URL"},
		{"a key for a parameter", "s3://bucket?secret=s3cr3t", `unknown query parameter "secret"`},
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

func TestTheCloudsAreOpenedByURL(t *testing.T) {
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

// open opens a store for the time of the test.
func open(t testing.TB, url string) *blobs.Store {
	t.Helper()
	store, err := blobs.Open(t.Context(), url, "default")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}
