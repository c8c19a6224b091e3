// Package show puts events into words for people: a line of a log, a note
// under an answer, the live text of an answer. Machines get JSON instead.
//
//	fmt.Println(show.Line(e))   // 15:04:05  demo:0002  user: Hello
//
// What comes from outside is cleaned by package terminal, so that no answer
// can move the cursor or change the title of a terminal.
package show
