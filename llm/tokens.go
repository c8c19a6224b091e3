package llm

import (
	"hash/maphash"
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
	// Bytes of a token of text, approximately.
	tokenBytes = 4
)

func tokensBySize(bytes int) int { return (bytes + tokenBytes - 1) / tokenBytes }

const (
	maxCounted = 256 << 10 // bytes of a text; the rest is extrapolated
	maxSampled = 64 << 10  // bytes of messages that were not counted before; the rest is extrapolated
	// Bytes per tokenizer call. On a text without spaces, the time of a call grows faster than the length.
	countedAtOnce = 4 << 10
	maxCounts     = 1 << 15 // in the cache, which is then emptied: all messages are counted once more
)

// tokenCounter estimates numbers of tokens. It is safe for concurrent use, and uses one CPU, so
// that counting a long conversation does not delay other answers. A vocabulary is loaded by the first count, in 0.2 s, and
// stays in memory.
// Conversations are sent again and again, so counts of messages are cached.
type tokenCounter struct {
	seed maphash.Seed

	counting sync.Mutex // guards codecs
	codecs   map[encoding]*codec.Codec

	mu     sync.Mutex // guards counts, and is held briefly
	counts map[countKey]int
}

type countKey struct {
	encoding encoding
	hash     uint64
}

func newTokenCounter() *tokenCounter {
	return &tokenCounter{seed: maphash.MakeSeed(), codecs: map[encoding]*codec.Codec{}, counts: map[countKey]int{}}
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

// messages counts the tokens of messages.
func (c *tokenCounter) messages(e encoding, sent conversation) int {
	tokens := requestTokens
	for _, m := range sent.messages {
		tokens += c.message(e, m.json)
	}
	return tokens
}

// extrapolated counts messages, but of a long conversation only a sample of those that were not counted before. The next
// request of the context waits for this count if the provider reported no usage, for example because the answer was
// interrupted.
func (c *tokenCounter) extrapolated(e encoding, sent conversation) int {
	tokens, others, size := c.known(e, sent)
	sampled, sampledSize := 0, 0
	every := 1 + size/maxSampled | 1 // odd, since users and models alternate
	for i := 0; i < len(others); i += every {
		m := others[i]
		sampled, sampledSize = sampled+c.message(e, m.json)-m.mediaParts*imageTokens, sampledSize+m.textSize()
	}
	if sampledSize == 0 {
		return tokens
	}
	return tokens + int(int64(size)*int64(sampled)/int64(sampledSize))
}

// known returns the tokens of messages that were counted before, and of all media, and the other messages with the size
// of their text.
func (c *tokenCounter) known(e encoding, sent conversation) (tokens int, others []renderedMessage, size int) {
	tokens = requestTokens
	for _, m := range sent.messages {
		if n, ok := c.cached(c.key(e, m.json)); ok {
			tokens += n
			continue
		}
		tokens += m.mediaParts * imageTokens
		others, size = append(others, m), size+m.textSize()
	}
	return tokens, others, size
}

// parameters counts the JSON of parameters.
func (c *tokenCounter) parameters(e encoding, parameters []byte) int {
	return c.once(e, parameters, func() int { return c.count(e, string(parameters)) })
}

func (c *tokenCounter) message(e encoding, message []byte) int {
	return c.once(e, message, func() int {
		texts, images := textsOf(message)
		tokens := messageTokens + images*imageTokens
		for _, text := range texts {
			tokens += c.count(e, text)
		}
		return tokens
	})
}

func (c *tokenCounter) key(e encoding, data []byte) countKey {
	return countKey{e, maphash.Bytes(c.seed, data)}
}

// once returns the cached count of data, or else what count returns.
func (c *tokenCounter) once(e encoding, data []byte, count func() int) int {
	key := c.key(e, data)
	tokens, ok := c.cached(key)
	if ok {
		return tokens
	}
	c.counting.Lock()
	tokens = count()
	c.counting.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.counts) >= maxCounts {
		clear(c.counts)
	}
	c.counts[key] = tokens
	return tokens
}

func (c *tokenCounter) cached(key countKey) (tokens int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tokens, ok = c.counts[key]
	return tokens, ok
}

func (c *tokenCounter) text(e encoding, text string) int {
	c.counting.Lock()
	defer c.counting.Unlock()
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
	m := valueOf(message)
	texts = append(texts, m.field("reasoning_content").text(), m.field("content").text())
	for part := range m.field("content").elements() {
		switch part.field("type").text() {
		case "text":
			texts = append(texts, part.field("text").text())
		case "thinking":
			for thought := range part.field("thinking").elements() {
				texts = append(texts, thought.field("text").text())
			}
		default:
			images++
		}
	}
	for call := range m.field("tool_calls").elements() {
		function := call.field("function")
		texts = append(texts, function.field("name").text(), function.field("arguments").text())
	}
	return texts, images
}
