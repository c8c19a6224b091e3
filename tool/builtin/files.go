package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/tool"
)

const (
	maxEntries   = 1000   // files and folders that list_files returns
	defaultLimit = 16_000 // bytes that read_file returns at once
	maxLimit     = 24_000
)

type listInput struct {
	Path      string `json:"path,omitempty" jsonschema:"a folder, relative to the root; default: the root"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"list the folders below, too"`
}

type readInput struct {
	Path   string `json:"path" jsonschema:"a text file, relative to the root"`
	Offset int64  `json:"offset,omitempty" jsonschema:"the first byte to read; default 0"`
	Limit  int    `json:"limit,omitempty" jsonschema:"the number of bytes to read; default 16000, at most 24000"`
}

// Files returns the tools list_files and read_file for a folder. The caller must keep the root open.
func Files(root *os.Root) []tool.Tool {
	f := files{root}
	return []tool.Tool{
		tool.Must(tool.New("list_files", "List the files and folders in a folder, with their sizes in bytes. Folders end with a slash.",
			f.list, tool.Idempotent())),
		tool.Must(tool.New("read_file", "Read a text file, or a part of a large one.", f.read, tool.Idempotent())),
	}
}

type files struct{ root *os.Root }

// clean returns a path relative to the root. Models write /a, ./a and a.
func clean(name string) (string, error) {
	cleaned := path.Clean(strings.TrimLeft(name, "/"))
	if !fs.ValidPath(cleaned) {
		return "", fmt.Errorf("path %s: outside of the root", strconv.Quote(name))
	}
	return cleaned, nil
}

func (f files) list(ctx context.Context, in listInput) (string, error) {
	folder, err := clean(in.Path)
	if err != nil {
		return "", err
	}
	var lines []string
	isCut := false
	err = fs.WalkDir(f.root.FS(), folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case name == folder && err == nil && !entry.IsDir():
			return fmt.Errorf("path %s: not a folder (use read_file)", strconv.Quote(in.Path))
		case name == folder:
			return err
		case err != nil:
			lines = append(lines, display(name)+" (cannot be read)")
			return fs.SkipDir
		case len(lines) == maxEntries:
			isCut = true
			return fs.SkipAll
		}
		lines = append(lines, line(name, entry))
		if entry.IsDir() && !in.Recursive {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return "", pathError(in.Path, err)
	}
	if isCut {
		lines = append(lines, fmt.Sprintf("[more than %d entries; list a subfolder]", maxEntries))
	}
	if len(lines) == 0 {
		return "[the folder is empty]", nil
	}
	return strings.Join(lines, "\n"), nil
}

func line(name string, entry fs.DirEntry) string {
	name = display(name)
	info, err := entry.Info()
	switch {
	case entry.IsDir():
		return name + "/"
	case err != nil:
		return name
	case entry.Type()&fs.ModeSymlink != 0:
		return name + " (link)"
	case !info.Mode().IsRegular():
		return name + " (not a file)"
	}
	return name + " " + strconv.FormatInt(info.Size(), 10)
}

func display(name string) string {
	if quoted := strconv.Quote(name); !utf8.ValidString(name) || strings.Contains(quoted, `\`) {
		return quoted
	}
	return name
}

func (f files) read(_ context.Context, in readInput) (string, error) {
	if in.Limit == 0 {
		in.Limit = defaultLimit
	}
	if in.Limit < 1 || in.Limit > maxLimit {
		return "", fmt.Errorf("limit %d is out of range (1 to %d)", in.Limit, maxLimit)
	}
	name, err := clean(in.Path)
	if err != nil {
		return "", err
	}
	file, size, err := f.open(name)
	if err != nil {
		return "", pathError(in.Path, err)
	}
	defer file.Close()
	if in.Offset < 0 || in.Offset > size || in.Offset == size && size > 0 {
		return "", fmt.Errorf("offset %d is out of range (0 to %d)", in.Offset, max(0, size-1))
	}
	data := make([]byte, max(in.Limit, utf8.UTFMax))
	n, err := file.ReadAt(data, in.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", pathError(in.Path, err)
	}
	from, text := whole(data[:n], in.Offset)
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return "", fmt.Errorf("path %s: not a text file in UTF-8", strconv.Quote(in.Path))
	}
	to := from + int64(len(text))
	switch {
	case size == 0:
		return "[the file is empty]", nil
	case from == 0 && to >= size:
		return string(text), nil
	}
	return string(text) + fmt.Sprintf("\n\n[bytes %d to %d of %d]", from, to, size), nil
}

// whole cuts incomplete characters from both ends of a part of a file. The rest begins at the
// returned offset.
func whole(part []byte, offset int64) (int64, []byte) {
	for i := 0; offset > 0 && i < utf8.UTFMax-1 && len(part) > 0 && !utf8.RuneStart(part[0]); i++ {
		part, offset = part[1:], offset+1
	}
	for i := 1; i < utf8.UTFMax && i <= len(part); i++ {
		if last := part[len(part)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				part = part[:len(part)-i]
			}
			break
		}
	}
	return offset, part
}

func (f files) open(name string) (*os.File, int64, error) {
	info, err := f.root.Stat(name) // opening a named pipe would block
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file (use list_files for a folder)")
	}
	if err != nil {
		return nil, 0, err
	}
	file, err := f.root.Open(name)
	return file, info.Size(), err
}

// pathError hides the operation and the worker's path.
func pathError(name string, err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("path %s: %w", strconv.Quote(name), err)
}
