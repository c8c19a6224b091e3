package llm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEncodingOf(t *testing.T) {
	for model, want := range map[string]encoding{
		"gpt-4o-mini": o200kBase, "openai/gpt-4.1": o200kBase, "gpt-5": o200kBase, "o3": o200kBase,
		"gpt-4": cl100kBase, "GPT-4-turbo": cl100kBase, "gpt-3.5-turbo": cl100kBase, "azure/gpt-35-turbo": cl100kBase,
		"llama-3.3-70b": o200kBase, "": o200kBase,
	} {
		require.Equal(t, want, encodingOf(model), model)
	}
}

func TestMessagesAreCountedOnce(t *testing.T) {
	var sent conversation
	for i := range 100 {
		sent.messages = append(sent.messages, renderedMessage{json: fmt.Appendf(nil, `{"role":"user","content":"message %d"}`, i)})
	}
	c := newTokenCounter()
	tokens := c.messages(o200kBase, sent)
	require.Len(t, c.counts, 100)
	for key := range c.counts {
		c.counts[key] = 1
	}
	require.Equal(t, requestTokens+100, c.messages(o200kBase, sent))
	require.NotEqual(t, requestTokens+100, c.messages(cl100kBase, sent), "another encoding")
	clear(c.counts)
	require.Equal(t, tokens, c.messages(o200kBase, sent))
}

func TestHostileTextIsCounted(t *testing.T) {
	c := newTokenCounter()
	for _, text := range []string{"\xff\xfe", "é", "\x00", "<|endoftext|>"} {
		require.Positive(t, c.text(o200kBase, text+"x"), "%q", text)
	}
	require.Zero(t, c.text(o200kBase, ""))
}
