package builtin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/builtin"
)

// filesOf returns a set with the tools for a folder with the files, and a secret beside it.
func filesOf(t *testing.T, files map[string]string) (set *tool.Set, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "root")
	for name, content := range files {
		name = filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(folder), "secret"), []byte("hidden"), 0o600))
	root, err := os.OpenRoot(folder)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return setOf(t, builtin.Files(root)...), folder
}

func TestListFiles(t *testing.T) {
	set, folder := filesOf(t, map[string]string{"b.txt": "four", "a/deep/x.md": "", "a/y.md": "12", "two\nlines": "1"})
	require.NoError(t, os.Symlink("b.txt", filepath.Join(folder, "link")))
	require.NoError(t, os.Symlink("../secret", filepath.Join(folder, "out")))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "empty"), 0o700))
	for _, test := range []struct {
		path        string
		isRecursive bool
		want        []string
	}{
		{"", false, []string{"a/", "b.txt 4", "empty/", "link (link)", "out (link)", `"two\nlines" 1`}},
		{"/", true, []string{"a/", "a/deep/", "a/deep/x.md 0", "a/y.md 2", "b.txt 4", "empty/", "link (link)", "out (link)", `"two\nlines" 1`}},
		{"a", false, []string{"a/deep/", "a/y.md 2"}},
		{"./a/", true, []string{"a/deep/", "a/deep/x.md 0", "a/y.md 2"}},
		{"/a/deep", false, []string{"a/deep/x.md 0"}},
		{"empty", false, []string{"[the folder is empty]"}},
	} {
		text, result := use(t, set, "list_files", map[string]any{"path": test.path, "recursive": test.isRecursive})
		require.False(t, result.IsError, text)
		require.Equal(t, test.want, strings.Split(text, "\n"))
	}
}

func TestListFilesIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 1100 {
		files[fmt.Sprintf("%04d", i)] = ""
	}
	set, _ := filesOf(t, files)
	text, _ := use(t, set, "list_files", map[string]any{})
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 1001)
	require.Equal(t, "0999 0", lines[999])
	require.Equal(t, "[more than 1000 entries; list a subfolder]", lines[1000])
}

func TestReadFile(t *testing.T) {
	long := strings.Repeat("aé€😀\n", 3000) // 33,000 bytes
	set, _ := filesOf(t, map[string]string{"a/short.txt": "hello\n", "empty": "", "long": long})
	for path, want := range map[string]string{"a/short.txt": "hello\n", "/a/short.txt": "hello\n", "./a/../a/short.txt": "hello\n", "empty": "[the file is empty]"} {
		text, result := use(t, set, "read_file", map[string]any{"path": path})
		require.False(t, result.IsError, text)
		require.Equal(t, want, text)
	}
	for _, limit := range []int{0, 1, 4, 7, 1000, 24_000} {
		read, offset := "", 0
		for offset < len(long) && len(read) < 5000 {
			part, result := use(t, set, "read_file", map[string]any{"path": "long", "offset": offset, "limit": limit})
			require.False(t, result.IsError, part)
			text, where, found := strings.Cut(part, "\n\n[bytes ")
			require.True(t, found)
			from, to, size := 0, 0, 0
			_, err := fmt.Sscanf(where, "%d to %d of %d]", &from, &to, &size)
			require.NoError(t, err)
			require.Equal(t, []int{offset, len(long)}, []int{from, size})
			require.Greater(t, to, offset)
			read, offset = read+text, to
		}
		require.True(t, strings.HasPrefix(long, read))
	}
	text, _ := use(t, set, "read_file", map[string]any{"path": "long", "offset": 2, "limit": 4})
	require.Equal(t, "€\n\n[bytes 3 to 6 of 33000]", text)
}

func TestFilesStayBelowTheirRoot(t *testing.T) {
	set, folder := filesOf(t, map[string]string{"in/file": "inside"})
	outside := filepath.Join(filepath.Dir(folder), "secret")
	for name, target := range map[string]string{
		"absolute": outside, "relative": "../secret", "in/up": "../../secret", "folder": "..", "chain": "in/up", "inner": "in/file",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(folder, filepath.FromSlash(name))))
	}
	for _, path := range []string{
		"../secret", "/../secret", "in/../../secret", "a/../../secret", "..", outside, "absolute", "relative", "in/up", "folder/secret", "chain",
		"", ".", "in", "missing", "in/file/x", "\x00", "../root/in/file",
	} {
		text, result := use(t, set, "read_file", map[string]any{"path": path})
		require.True(t, result.IsError, path)
		require.NotContains(t, text, "hidden")
		require.Contains(t, text, "path ", "the error names the path of the model")
	}
	for _, path := range []string{"..", "/..", "../root", "folder", "in/../..", "in/file", "absolute"} {
		text, result := use(t, set, "list_files", map[string]any{"path": path, "recursive": true})
		require.True(t, result.IsError, "%s: %s", path, text)
	}
	text, _ := use(t, set, "read_file", map[string]any{"path": "inner"})
	require.Equal(t, "inside", text)
	text, _ = use(t, set, "list_files", map[string]any{"recursive": true})
	require.NotContains(t, text, "secret")
}

func TestReadFileFailures(t *testing.T) {
	set, folder := filesOf(t, map[string]string{"text": "four", "binary": "a\x00b", "latin": "caf\xe9 au lait"})
	require.NoError(t, os.Mkdir(filepath.Join(folder, "folder"), 0o700))
	for _, test := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"path": "missing"}, `path "missing": no such file or directory`},
		{map[string]any{"path": "password"}, `path "password": no such file or directory`},
		{map[string]any{"path": "conf/api_key"}, `path "conf/api_key": no such file or directory`},
		{map[string]any{"path": "folder"}, `path "folder": not a file (use list_files for a folder)`},
		{map[string]any{"path": "../x"}, `path "../x": outside of the root`},
		{map[string]any{"path": "binary"}, `path "binary": not a text file in UTF-8`},
		{map[string]any{"path": "latin"}, `path "latin": not a text file in UTF-8`},
		{map[string]any{"path": "text", "offset": 4}, "offset 4 is out of range (0 to 3)"},
		{map[string]any{"path": "text", "offset": -1}, "offset -1 is out of range (0 to 3)"},
		{map[string]any{"path": "text", "limit": 24_001}, "limit 24001 is out of range (1 to 24000)"},
		{map[string]any{"path": "text", "limit": -1}, "limit -1 is out of range (1 to 24000)"},
	} {
		text, result := use(t, set, "read_file", test.arguments)
		require.True(t, result.IsError)
		require.Equal(t, test.want, text)
	}
}
