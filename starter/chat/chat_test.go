package chat_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/starter/chat"
)

func TestAScreenEndsWithItsTerminal(t *testing.T) {
	in, terminal, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, terminal.Close())
	require.Equal(t, chat.ErrTerminalGone, chat.Run(t.Context(), in, io.Discard, chat.Config{Context: newFakeContext("demo")}))
}
