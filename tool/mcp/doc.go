// Package mcp offers the tools of MCP servers to models.
//
//	servers, err := mcp.ReadServers("mcp.json")
//	running, err := mcp.New(mcp.Options{Servers: servers})
//	running.Start()
//	defer running.Close()
//	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: running}})
//
// A context names tools as mcp:SERVER/TOOL, where * matches any characters. Models receive them as
// mcp__SERVER__TOOL. If models do not accept a name, _ replaces the rejected characters, and the
// name, cut to 64 bytes, ends with a hash.
//
// A server is a program that speaks over its standard input and output, or a URL with the
// streamable HTTP transport. All contexts of the process share it. When it ends, it is restarted,
// with increasing delays. Guarantees:
//   - The failure of a server affects only its own calls, which become error results. Its tools
//     are still offered if they were listed once; otherwise the log of the context says why they are withheld.
//   - Servers that deviate from MCP are worked around where possible, and each deviation is counted by kind
//     ([Options].OnQuirk): text between messages, ids of other types, results without content or with unknown content,
//     listings without an end, schemas of earlier drafts, event streams that end. [Servers.Status] names the tools that
//     still cannot be offered.
//   - The error of a call says whether the call was made.
//   - A changed list of tools is offered from the next turn on. Until then, calls of a tool that is
//     gone are errors.
//   - A program sees no key of the worker: its environment is PATH, HOME and what its config
//     contains. [Servers.Close] kills its process group.
//   - Headers are sent only to the origin of the URL: its scheme, host and port. Redirects to other
//     origins are not followed.
//   - Secrets of env:NAME and file:/path with at least 6 bytes are removed from logs, errors and
//     results.
//   - Names, descriptions and schemas of tools, and what servers log, are untrusted: they are
//     bounded and contain no control characters.
package mcp
