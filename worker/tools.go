package main

import (
	"os"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/logging"
	"github.com/seed-9ed7edd4/chronicle/tool"
	"github.com/seed-9ed7edd4/chronicle/tool/builtin"
	"github.com/seed-9ed7edd4/chronicle/tool/mcp"
)

// toolFlags are the flags that enable built-in tools.
var toolFlags = map[string]string{
	"fetch":      "--tool-fetch",
	"list_files": "--tool-files-root",
	"read_file":  "--tool-files-root",
}

// openFilesRoot opens the folder of list_files and read_file; nil without one.
func openFilesRoot(dir string) (*os.Root, error) {
	if dir == "" {
		return nil, nil
	}
	// A root rejects all paths out of it, including symbolic links.
	return os.OpenRoot(dir)
}

// tools returns the tools that contexts may name. A nil root disables those for files;
// nil servers have no tools.
func (s settings) tools(history builtin.Log, files *os.Root, servers *mcp.Servers, log *zap.Logger) (*tool.Set, error) {
	enabled := []tool.Tool{builtin.SearchLog(history)}
	if s.ToolFetch {
		enabled = append(enabled, builtin.Fetch(builtin.FetchOptions{}))
	}
	if files != nil {
		enabled = append(enabled, builtin.Files(files)...)
	}
	disabled := map[string]string{}
	for name, flag := range toolFlags {
		disabled[name] = "start it with " + flag
	}
	options := tool.Options{Disabled: disabled, Logger: logging.Structured(log, "tool", zap.WarnLevel)}
	if servers != nil {
		options.Sources = map[string]tool.Source{mcp.Prefix: servers}
	}
	return tool.NewSet(options, enabled...)
}
