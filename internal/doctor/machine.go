package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	lowBytes   = 2 << 30
	noBytes    = 256 << 20
	lowFiles   = 4096
	noFiles    = 512
	usualFiles = 65536
)

var errUnsupported = errors.New("not supported on " + runtime.GOOS)

// StoreFolder returns the folder of a blob store with a file URL; ok is false for others.
func StoreFolder(blobURL string) (f Folder, ok bool) {
	u, err := url.Parse(blobURL)
	if err != nil || u.Scheme != "file" {
		return Folder{}, false
	}
	path := u.Path
	if u.Host == "." {
		path = strings.TrimPrefix(path, "/")
	}
	return Folder{Path: filepath.FromSlash(path), Use: "blob store"}, true
}

// TempFolder returns the folder to which caches are written when they exceed their memory.
func TempFolder() Folder { return Folder{Path: os.TempDir(), Use: "temporary files"} }

func (d *Deployment) disk() Check {
	return Check{
		Name: "disk.space",
		Why:  "on a full disk, the blob store accepts no events, and contexts stop",
		Run: func(context.Context) Result {
			var measured []string
			lowest := uint64(math.MaxUint64)
			for _, f := range d.Folders {
				free, total, err := d.freeBytes(existing(f.Path))
				if err != nil {
					return unread(fmt.Sprintf("the free space of %s %s", f.Use, f.Path), "check the folder", err)
				}
				lowest = min(lowest, free)
				measured = append(measured, fmt.Sprintf("%s %s: %s of %s free", f.Use, f.Path, sizeOf(free), sizeOf(total)))
			}
			all := strings.Join(measured, "; ")
			const fix = "free space on the disk, or move the folder to a larger one"
			switch {
			case len(d.Folders) == 0:
				return skipped("no local folder is used")
			case lowest < noBytes:
				return failure(fix, "%s, less than %s", all, sizeOf(noBytes))
			case lowest < lowBytes:
				return warning(fix, "%s, less than %s", all, sizeOf(lowBytes))
			}
			return ok("%s", all)
		},
	}
}

// unread returns the result for a reading that failed.
func unread(reading, fix string, err error) Result {
	if errors.Is(err, errUnsupported) {
		return skipped("read %s: %v", reading, err)
	}
	return failure(fix, "read %s: %s", reading, text(err))
}

// existing returns the closest folder that exists, since a store creates its own on first use.
func existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return path
		}
		path = filepath.Dir(path)
	}
	return path
}

func sizeOf(bytes uint64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

func (d *Deployment) files() Check {
	return Check{
		Name: "files.limit",
		Why:  "each running answer, viewer and MCP server needs open files; beyond the limit, new connections fail",
		Run: func(context.Context) Result {
			n, err := d.openFiles()
			if err != nil {
				return unread("the limit of open files", "check the limits of the process", err)
			}
			fix := fmt.Sprintf("raise the limit, with ulimit -n %d, LimitNOFILE=%[1]d of systemd, or ulimits of Docker", usualFiles)
			switch {
			case n < noFiles:
				return failure(fix, "the process may open %d files, less than %d", n, noFiles)
			case n < lowFiles:
				return warning(fix, "the process may open %d files, less than %d", n, lowFiles)
			}
			return ok("the process may open %d files", n)
		},
	}
}
