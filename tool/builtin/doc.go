// Package builtin has tools that need no code:
//
//	fetch       fetches a page of the public Internet
//	list_files  lists files below a folder of the worker
//	read_file   reads a text file below that folder
//	search_log  searches the log of the context that calls it
//
// A context uses those that its event.SetTools names and that its worker has. Guarantees:
//   - The tools change nothing, so a call is repeated if its worker dies.
//   - fetch connects to public addresses only: see package internal/egress.
//   - list_files and read_file reach no file outside their folder, not even through symbolic links.
//   - search_log reads no other context.
package builtin
