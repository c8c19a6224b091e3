// Package mcp offers the tools of MCP servers to models.
//
//	servers, err := mcp.ReadServers("mcp.json")
//	running, err := mcp.New(mcp.Options{Servers: servers})
//	running.Start()
//	defer running.Close()
//	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: running}})
//
// A context names tools as mcp:SERVER/TOOL, where * matches any characters. Models receive them as
// mcp__SERVER__TOOL; a name that models do not accept is shortened and ends with a hash.
//
// A server is a program that speaks over its standard input and output, or a URL with the
// streamable HTTP transport. All contexts of the process share it. It is restarted when it ends,
// with increasing delays.
//
// Guarantees:
//   - A server that dies, hangs or cannot start affects only its own calls: they become error
//     results. Its tools are still offered if they were listed once.
//   - All steps of a request are offered the same list of tools, as long as this process serves
//     them. A changed list is used from the next request on.
//   - A program has the environment PATH, HOME and what its config contains, so it sees no key of
//     the worker. [Servers.Close] kills its process group.
//   - Headers are sent only to the host of the URL; redirects to other hosts are not followed.
//   - Secrets that env:NAME and file:/path refer to are removed from logs, errors and results, if
//     they have at least 6 bytes.
//   - Names, descriptions and schemas of tools, and what servers log, are untrusted: they are
//     bounded and contain no control characters.
package mcp
