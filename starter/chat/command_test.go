package chat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/starter/chat"
)

func TestParseLine(t *testing.T) {
	for _, test := range []struct {
		line      string
		command   chat.Command
		text      string
		isCommand bool
	}{
		{"  Hello  ", chat.Command{}, "Hello", false},
		{"/state", chat.Command{Name: "state"}, "", true},
		{"/attach  my cat.png ", chat.Command{Name: "attach", Argument: "my cat.png"}, "", true},
		{"/nonsense", chat.Command{Name: "nonsense"}, "", true},
		{"//state", chat.Command{}, "/state", false},
		{"/etc/hosts is what?", chat.Command{}, "/etc/hosts is what?", false},
		{"/", chat.Command{}, "", true},
		{"", chat.Command{}, "", false},
	} {
		t.Run(test.line, func(t *testing.T) {
			command, text, isCommand := chat.ParseLine(test.line)
			require.Equal(t, test.command, command)
			require.Equal(t, test.text, text)
			require.Equal(t, test.isCommand, isCommand)
		})
	}
}
