package doctor

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
)

func TestDiskSpace(t *testing.T) {
	folders := []Folder{{Path: "/large", Use: "blob store"}, {Path: "/small", Use: "temporary files"}}
	tests := []struct {
		name     string
		free     uint64
		err      error
		severity Severity
		measured string
	}{
		{"enough", 50 << 30, nil, OK, "temporary files /small: 50.0 GiB of 100.0 GiB free"},
		{"low", 1 << 30, nil, Warning, "temporary files /small: 1.0 GiB of 100.0 GiB free, less than 2.0 GiB"},
		{"full", 100 << 20, nil, Error, "temporary files /small: 100 MiB of 100.0 GiB free, less than 256 MiB"},
		{"unsupported", 0, errUnsupported, Skipped, "not supported on"},
		{"unreadable", 0, errors.New("input/output error"), Error, "read the free space of temporary files /small: input/output error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			paths := 0
			d := &Deployment{Folders: folders, FreeBytes: func(string) (free, total uint64, err error) {
				if paths++; paths == 1 {
					return 60 << 30, 100 << 30, nil
				}
				return tt.free, 100 << 30, tt.err
			}}
			requireFinding(t, examine(t, d.disk())["disk.space"], tt.severity, tt.measured)
		})
	}
}

func TestOpenFiles(t *testing.T) {
	tests := []struct {
		limit    uint64
		err      error
		severity Severity
		measured string
	}{
		{65536, nil, OK, "may open 65536 files"},
		{1024, nil, Warning, "may open 1024 files, less than 4096"},
		{256, nil, Error, "may open 256 files, less than 512"},
		{0, errUnsupported, Skipped, "not supported on"},
		{0, errors.New("denied"), Error, "read the limit of open files: denied"},
	}
	for _, tt := range tests {
		d := &Deployment{OpenFiles: func() (uint64, error) { return tt.limit, tt.err }}
		requireFinding(t, examine(t, d.files())["files.limit"], tt.severity, tt.measured)
	}
}

func TestThisMachineIsMeasured(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("free space and limit tests, not supported on " + runtime.GOOS)
	}
	dir := t.TempDir()
	d, err := ForClient(client.Config{Address: "127.0.0.1:1", BlobURL: "file://" + filepath.ToSlash(filepath.Join(dir, "not", "created"))})
	require.NoError(t, err)
	free, total, err := freeBytes(existing(d.Folders[0].Path))
	require.NoError(t, err)
	require.LessOrEqual(t, free, total)
	require.NotZero(t, total)
	require.Equal(t, dir, existing(d.Folders[0].Path))
	limit, err := openFiles()
	require.NoError(t, err)
	require.NotZero(t, limit)
}

func TestFoldersOfStores(t *testing.T) {
	for rawURL, want := range map[string]string{"file:///a/b": "/a/b", "file:///a%20b": "/a b", "file://./a/b": "a/b", "s3://bucket": "", "::": ""} {
		f, ok := StoreFolder(rawURL)
		require.Equal(t, want != "", ok, rawURL)
		require.Equal(t, filepath.FromSlash(want), f.Path, rawURL)
	}
}
