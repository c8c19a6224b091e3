// Package chat is the interactive screen of "starter chat".
//
//	past, err := …                          // the log so far
//	err = chat.Run(ctx, os.Stdin, os.Stdout, chat.Config{Context: demo, Past: past})
//
// It draws inline, below the terminal's existing content. Finished text scrolls up and stays
// in the terminal, so a long answer is not limited by the window height. Only the incomplete
// end of an answer, the lines waiting for it and the input line are redrawn. Tests of [Model]
// pass messages to Update and emulate the terminal to which it writes.
//
// The screen shows the log. A message appears when it is recorded, regardless of which client sent it,
// and a recorded answer replaces its streamed deltas. A typed message is dimmed above the input line
// until it is recorded.
package chat
