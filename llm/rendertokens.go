package llm

import "sort"

// cachedMessages describes the messages of a request whose JSON is in the cache ([rendered]). None has media.
type cachedMessages struct {
	size, tokens int // tokens 0: not counted
	// sample is JSON of the messages, each after a comma: all of them, or some if they exceed maxSampled
	// bytes. Nil: tokens is known, or there are no messages.
	sample     [][]byte
	sampleSize int
}

// roughTokens returns an estimate by size, except for messages that were counted before.
func (c conversation) roughTokens() int {
	size := -c.mediaBytes
	for _, message := range c.shown {
		size += len(message)
	}
	tokens := requestTokens + tokensBySize(size) + c.mediaParts*imageTokens
	if c.cached.tokens > 0 {
		return tokens + c.cached.tokens
	}
	return tokens + tokensBySize(c.cached.size)
}

func (r *rendering) startCounting() {
	r.counts = true
	encoding := encodingOf(r.target.Model)
	for i := range r.groups {
		if r.encoding != encoding {
			r.groups[i].tokens = 0
		}
	}
	r.encoding = encoding
}

// countCached adds the tokens of a group that an earlier request rendered, and may have counted.
func (r *rendering) countCached(n int) {
	if !r.counts {
		return
	}
	if g := &r.groups[n]; g.tokens == 0 {
		g.tokens = r.target.counter.messages(r.encoding, r.cachedGroup(n))
	}
	r.tokens += r.groups[n].tokens
}

// cachedGroup returns the JSON of a group in the body; empty: the group is not cached.
func (r *rendering) cachedGroup(n int) []byte {
	return r.body[r.groups[n].at:r.endOfGroup(n)]
}

func (r *rendering) endOfGroup(n int) int {
	if n+1 < len(r.groups) {
		return r.groups[n+1].at
	}
	return len(r.body)
}

// cachedMessages runs for every request, so it must be fast: cachedTokens stops at the first uncounted group,
// and a binary search finds the sample without visiting all groups.
func (r *rendering) cachedMessages() cachedMessages {
	cached := cachedMessages{size: len(r.body), tokens: r.cachedTokens()}
	if cached.tokens > 0 {
		return cached
	}
	for begin, end := 0, 0; begin < len(r.body); begin += max(len(r.body)/samples, maxSampled/samples) {
		from := max(end, r.groups[r.groupAt(begin)].at)
		if end = r.endOfGroup(r.groupAt(begin + maxSampled/samples - 1)); from < end {
			cached.sample, cached.sampleSize = append(cached.sample, r.body[from:end]), cached.sampleSize+end-from
		}
	}
	return cached
}

// groupAt returns the group that contains a position of the body, or the last one.
func (r *rendering) groupAt(position int) int {
	return sort.Search(len(r.groups), func(n int) bool { return r.groups[n].at > position }) - 1
}

// cachedTokens returns the tokens of the cached groups; 0: not all were counted.
func (r *rendering) cachedTokens() (tokens int) {
	if r.encoding != encodingOf(r.target.Model) {
		return 0
	}
	for i := range r.groups {
		if r.groups[i].tokens == 0 && len(r.cachedGroup(i)) > 0 {
			return 0
		}
		tokens += r.groups[i].tokens
	}
	return tokens
}
