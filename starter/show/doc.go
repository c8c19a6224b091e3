// Package show formats events, states and live answers as text for terminals.
//
//	fmt.Println(show.Line(e))   // 15:04:05  demo:0002  user: Hello
//
// Package terminal escapes control characters in external text, so that an answer cannot
// move the cursor or set the title of a terminal.
package show
