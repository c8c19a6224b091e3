// Package chat is the interactive screen of "starter chat".
//
//	past, err := …                          // the log so far
//	err = chat.Run(ctx, os.Stdin, os.Stdout, chat.Config{Context: demo, Past: past})
//
// It draws inline, below what the terminal shows already. What is finished
// scrolls up and belongs to the terminal, so that a long answer is never cut by
// the height of the window; only the unfinished end of an answer, what waits
// behind it and the input line are redrawn. [Model] is the screen as a value to
// test: messages go into Update, View and commands come out.
//
// The log decides what is shown, not the keyboard: a line appears when it is
// recorded, whoever sent it, and the answer in the log has the last word over
// the deltas that announced it.
package chat
