package chat

import (
	"regexp"
	"strings"
)

const Help = `/new [NAME]       talk to a new context
/switch NAME      talk to another context; a running answer of this one continues
/contexts         list contexts
/attach FILE|URL  attach a file to the next message
/system TEXT      set the system prompt; without TEXT, remove it
/state            show the status, settings and messages of the context
/events           show the newest events of the log
/answer           show the prompt of a tool call that Esc postponed
/deny [REASON]    deny the approval of a tool call, or decline its question
/quit             exit, like Ctrl-D
/help             show this help
//text            send /text as a message
When a tool call waits for an approval, y approves it, n denies it, e edits its arguments, and Esc postpones the decision.
When the tool of a client asks a question, the next line is its result; Esc lets you write a message instead.
A message typed while an answer runs is sent at once; the delivery policy of the context decides what happens to the answer.
Ctrl-C interrupts the running answer; pressed again before it has stopped, it exits.
Alt-Enter inserts a newline, and pasted text can contain newlines; they are shown as ␤.`

type Command struct {
	// Name is the word after the slash.
	Name string
	// Argument is the rest of the line.
	Argument string
}

// A path like /etc/hosts does not match.
var commandLine = regexp.MustCompile(`(?s)^/([A-Za-z]*)(?:\s+(.*))?$`)

// Two slashes start a message that begins with a slash.
func ParseLine(line string) (command Command, text string, isCommand bool) {
	line = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(line, "//"); ok {
		return Command{}, "/" + rest, false
	}
	if match := commandLine.FindStringSubmatch(line); match != nil {
		return Command{Name: match[1], Argument: strings.TrimSpace(match[2])}, "", true
	}
	return Command{}, line, false
}

// UnknownAdvice follows the error about an unknown command.
const UnknownAdvice = "(/help lists the commands; start a message with // to send a leading slash)"
