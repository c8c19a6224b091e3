package llm

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Approximate tokens that OpenAI counts in addition to the text of a request.
const (
	requestTokens = 3
	messageTokens = 4
	// For a high-detail image of one megapixel. Other media count the same.
	imageTokens = 765
	// Bytes of a token of text, approximately, in most languages.
	tokenBytes = 4
)

func tokensBySize(bytes int) int { return (bytes + tokenBytes - 1) / tokenBytes }

const (
	maxCounted = 256 << 10 // bytes of a text; the rest is extrapolated
	maxSampled = 64 << 10  // bytes of a long conversation
	// Bytes per tokenizer call, whose time grows faster than the length of a text without spaces.
	countedAtOnce = 4 << 10
	maxCounts     = 1 << 15 // messages in a generation of the cache
)

// tokenCounter estimates numbers of tokens. It is safe for concurrent use, and uses one CPU, so
// that counting a long conversation does not delay other answers. The first count loads a
// vocabulary, which stays in memory. Conversations are sent again and again, so counts of messages
// are cached, in two generations.
type tokenCounter struct {
	seed maphash.Seed

	mu         sync.Mutex
	codecs     map[encoding]*codec.Codec
	young, old map[countKey]int
}

type countKey struct {
	encoding encoding
	hash     uint64
}

func newTokenCounter() *tokenCounter {
	return &tokenCounter{seed: maphash.MakeSeed(), codecs: map[encoding]*codec.Codec{}, young: map[countKey]int{}}
}

type encoding string

const (
	o200kBase  encoding = "o200k_base"
	cl100kBase encoding = "cl100k_base"
)

// Package tokenizer would link all vocabularies.
var newCodec = map[encoding]func() *codec.Codec{o200kBase: codec.NewO200kBase, cl100kBase: codec.NewCl100kBase}

// For models of other vendors, o200k_base is an approximation.
func encodingOf(model string) encoding {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, newer := range []string{"gpt-4o", "gpt-4.1", "gpt-4.5"} {
		if strings.HasPrefix(name, newer) {
			return o200kBase
		}
	}
	for _, older := range []string{"gpt-4", "gpt-3.5", "gpt-35"} {
		if strings.HasPrefix(name, older) {
			return cl100kBase
		}
	}
	return o200kBase
}

// conversation counts a conversation completely, or extrapolates the count of its first messages if it is
// long. It is used when an answer was interrupted, and the next request waits for the result.
func (c *tokenCounter) conversation(e encoding, sent conversation) int {
	if len(sent.cached) <= maxSampled {
		tokens, _ := c.messages(e, math.MaxInt64, sent.json...)
		return requestTokens + tokens
	}
	tokens, size := c.messages(e, maxSampled, sent.cached[1:]) // without the comma
	return requestTokens + int(int64(tokens)*int64(sent.textSize())/size) + sent.mediaParts*imageTokens
}

// messages counts the tokens of JSON objects that are separated by commas, up to the first that ends after
// limit bytes. Size is the number of bytes that it counted.
func (c *tokenCounter) messages(e encoding, limit int64, pieces ...[]byte) (tokens int, size int64) {
	readers := []io.Reader{strings.NewReader("[")}
	for _, piece := range pieces {
		readers = append(readers, bytes.NewReader(piece))
	}
	decoder := json.NewDecoder(io.MultiReader(append(readers, strings.NewReader("]"))...))
	if _, err := decoder.Token(); err != nil {
		return 0, 0
	}
	for decoder.InputOffset() <= limit && decoder.More() {
		var message json.RawMessage
		if decoder.Decode(&message) != nil {
			break
		}
		tokens += c.message(e, message)
	}
	return tokens, decoder.InputOffset()
}

func (c *tokenCounter) message(e encoding, message []byte) int {
	key := countKey{e, maphash.Bytes(c.seed, message)}
	c.mu.Lock()
	defer c.mu.Unlock()
	tokens, ok := c.young[key]
	if ok {
		return tokens
	}
	if tokens, ok = c.old[key]; !ok {
		tokens = messageTokens
		texts, images := textsOf(message)
		for _, text := range texts {
			tokens += c.count(e, text)
		}
		tokens += images * imageTokens
	}
	if len(c.young) >= maxCounts {
		c.old, c.young = c.young, map[countKey]int{}
	}
	c.young[key] = tokens
	return tokens
}

func (c *tokenCounter) text(e encoding, text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count(e, text)
}

func (c *tokenCounter) count(e encoding, text string) int {
	if text == "" {
		return 0
	}
	codec := c.codecs[e]
	if codec == nil {
		codec = newCodec[e]()
		c.codecs[e] = codec
	}
	tokens, counted := 0, min(len(text), maxCounted)
	for begin := 0; begin < counted; begin += countedAtOnce {
		part := strings.ToValidUTF8(text[begin:min(begin+countedAtOnce, counted)], "")
		n, err := codec.Count(part)
		if err != nil {
			n = len(part) / 4
		}
		tokens += n
	}
	return int(int64(tokens) * int64(len(text)) / int64(counted))
}

func textsOf(message []byte) (texts []string, images int) {
	var m struct {
		Content          json.RawMessage `json:"content"`
		ReasoningContent string          `json:"reasoning_content"`
		ToolCalls        []struct {
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(message, &m) != nil {
		return []string{string(message)}, 0
	}
	texts = append(texts, m.ReasoningContent)
	var text string
	var parts []struct {
		Type     string                  `json:"type"`
		Text     string                  `json:"text"`
		Thinking []struct{ Text string } `json:"thinking"`
	}
	if json.Unmarshal(m.Content, &text) == nil {
		texts = append(texts, text)
	} else if json.Unmarshal(m.Content, &parts) == nil {
		for _, part := range parts {
			switch part.Type {
			case "text":
				texts = append(texts, part.Text)
			case "thinking":
				for _, thought := range part.Thinking {
					texts = append(texts, thought.Text)
				}
			default:
				images++
			}
		}
	}
	for _, call := range m.ToolCalls {
		texts = append(texts, call.Function.Name, call.Function.Arguments)
	}
	return texts, images
}
