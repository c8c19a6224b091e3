package llm

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"io"
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Approximate tokens that OpenAI counts in addition to the text of a request.
const (
	requestTokens = 3
	messageTokens = 4
	// imageTokens is the count for a high-detail image of one megapixel. Other media count the
	// same.
	imageTokens = 765
)

const (
	// maxCounted is the length of the part of a text that is counted, in bytes; the rest is
	// extrapolated.
	maxCounted = 256 << 10
	// countedAtOnce bounds the text that the tokenizer receives, in bytes: the time for a text
	// without spaces grows faster than its length.
	countedAtOnce = 4 << 10
	// maxCounts bounds a generation of cached counts.
	maxCounts = 1 << 15
)

// tokenCounter estimates numbers of tokens. It is safe for concurrent use, and uses one CPU, so
// that counting a long conversation does not delay other answers. The first count loads a
// vocabulary, which takes memory for as long as the process runs.
//
// The counts of messages are cached: a conversation is sent again and again. The cache keeps
// the messages counted since the last change of generations, and those of the generation
// before.
type tokenCounter struct {
	seed maphash.Seed

	mu         sync.Mutex
	codecs     map[encoding]*codec.Codec
	young, old map[countKey]int
}

// countKey identifies a message by a hash of its JSON.
type countKey struct {
	encoding encoding
	hash     uint64
}

func newTokenCounter() *tokenCounter {
	return &tokenCounter{seed: maphash.MakeSeed(), codecs: map[encoding]*codec.Codec{}, young: map[countKey]int{}}
}

// encoding is the name of an encoding of OpenAI.
type encoding string

const (
	o200kBase  encoding = "o200k_base"
	cl100kBase encoding = "cl100k_base"
)

// newCodec loads the vocabularies of the encodings. Package tokenizer would link others, too.
var newCodec = map[encoding]func() *codec.Codec{o200kBase: codec.NewO200kBase, cl100kBase: codec.NewCl100kBase}

// encodingOf returns the encoding of a model. For models of other vendors, o200k_base is an
// approximation.
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

// conversation counts the tokens of messages as sent: the JSON of [conversation].
func (c *tokenCounter) conversation(e encoding, sent [][]byte) int {
	readers := []io.Reader{strings.NewReader("[")}
	for _, piece := range sent {
		readers = append(readers, bytes.NewReader(piece))
	}
	decoder := json.NewDecoder(io.MultiReader(append(readers, strings.NewReader("]"))...))
	tokens := requestTokens
	if _, err := decoder.Token(); err != nil {
		return tokens
	}
	for decoder.More() {
		var message json.RawMessage
		if decoder.Decode(&message) != nil {
			return tokens
		}
		tokens += c.message(e, message)
	}
	return tokens
}

// message counts the tokens of a message as sent.
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

// text counts the tokens of a text.
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

// textsOf returns the texts of a message as sent, and the number of its images.
func textsOf(message []byte) (texts []string, images int) {
	var m struct {
		Content   json.RawMessage `json:"content"`
		ToolCalls []struct {
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(message, &m) != nil {
		return []string{string(message)}, 0
	}
	var text string
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &text) == nil {
		texts = append(texts, text)
	} else if json.Unmarshal(m.Content, &parts) == nil {
		for _, part := range parts {
			if part.Type == "text" {
				texts = append(texts, part.Text)
			} else {
				images++
			}
		}
	}
	for _, call := range m.ToolCalls {
		texts = append(texts, call.Function.Name, call.Function.Arguments)
	}
	return texts, images
}
