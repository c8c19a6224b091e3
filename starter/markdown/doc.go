// Package markdown shows Markdown in a terminal while it arrives.
//
//	r := markdown.Renderer{Width: 80}
//	print(r.Write("# Na"))    // rows that are final
//	show(r.Tail())            // rows that can still change
//	print(r.Write("mes\n"))
//	print(r.End())
//
// A row that Write or End returns is never revised: text that could still become, for example, bold
// is part of the tail until it is decided. A marker without its counterpart within 200 bytes is text.
// Rendered are headings, emphasis, code, lists, quotations, links, rules and tables with a leading |,
// line by line; anything else is shown as it is. Control characters are removed.
package markdown
