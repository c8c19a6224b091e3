package chat

import (
	"fmt"
	"regexp"
	"strings"
)

// Help lists what can be typed.
const Help = `/attach FILE|URL  goes with the next message
/system TEXT      sets the system prompt; without TEXT it is removed
/state            what the context is doing, its settings, its messages
/events           the newest events of the log
/quit             leaves, like Ctrl-D
/help             this list
//text            sends /text as it is
A new line while an answer runs is sent at once; the policy of the context decides what that does to the answer.
Ctrl-C interrupts the running answer; pressed again before it has stopped, it leaves.
Alt-Enter begins a new line in the message, and so does a newline in what is pasted; both are shown as ␤.`

// Command is a line that is not for the model.
type Command struct {
	// Name is the word behind the slash.
	Name string
	// Argument is the rest of the line.
	Argument string
}

// A path like /etc/hosts is no command.
var commandLine = regexp.MustCompile(`(?s)^/([A-Za-z]*)(?:\s+(.*))?$`)

// ParseLine tells commands from text for the model. A text that should begin
// with a slash and a word is written with two slashes.
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

// UnknownCommand says that there is no command of a name, and what to do.
func UnknownCommand(name string) error {
	return fmt.Errorf("there is no /%s; /help lists what there is, two slashes send a line as it is", name)
}
