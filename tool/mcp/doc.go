// Package mcp offers the tools of MCP servers to models.
//
//	servers, err := mcp.ReadServers("mcp.json")
//	running, err := mcp.New(mcp.Options{Servers: servers})
//	running.Start()
//	defer running.Close()
//	set, err := tool.NewSet(tool.Options{Sources: map[string]tool.Source{mcp.Prefix: running}})
//
// A context names tools as mcp:SERVER/TOOL, also with *. Models know them as mcp__SERVER__TOOL; a
// name that does not fit ends with a hash.
//
// A server is a program that speaks over its standard input and output, or a URL with the
// streamable HTTP transport. All contexts of the process share it. It is started again when it
// ends, with increasing delays.
//
// Guarantees:
//   - A server that dies, hangs or cannot start costs its calls only: they become error results,
//     and their tools stay offered if they were listed once.
//   - All steps of a request are offered the same list of tools, as long as this process serves
//     them. A changed list is used from the next request on.
//   - A program has the environment PATH, HOME and what its config contains, so it sees no key of
//     the worker. [Servers.Close] kills its process group.
//   - Headers go only to the host of the URL; no redirect to another one is followed.
//   - The content of references env:NAME and file:/path occurs neither in logs and errors nor in
//     results.
//   - Names, descriptions and schemas of tools, and what servers log, are untrusted: they are
//     bounded and contain no control characters.
package mcp
