package llm

import (
	"container/list"
	"slices"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// rendered is the rendering of a conversation, reused by its next request.
type rendered struct {
	messages []reducer.Message
	calls    []call // all tool calls, in the order of the conversation
	groups   []group
	// body is the JSON of the cached groups. Its bytes are never overwritten, since requests in flight may read them.
	body     []byte
	encoding encoding // of the counted tokens
}

// call has the indexes of its message and its result (-1: none).
type call struct {
	by, result int
	exact      string // id that the provider of the request gave; "": unknown
	earlier    int    // number of earlier calls with that id, or else with its own
}

// group is the smallest part of a conversation that is rendered and cached as a whole: a message and the
// results of its calls; the messages that are merged with it; and, if the provider accepts no user message
// directly after results, the next user message, with an answer inserted before it. The reasoning and the ids
// of calls in a group also depend on earlier messages. Whether the next message joins the group depends on
// that message.
//
// Some groups are not cached: the first one, which includes the system message; those with attachments, which
// are large and may change; and the last one, which may grow.
type group struct {
	from      int  // index of its first message
	at        int  // offset of its JSON in the body
	isFresh   bool // has attachments, so each request renders it
	hasAnswer bool
	tokens    int // of its JSON in the body; 0: not counted
}

// resume invalidates cached groups that no longer match, and returns the first message to render. The
// groups that begin before the first change remain valid, except for the last of them: it depends on
// the message after it.
func (r *rendering) resume(messages []reducer.Message) (next int) {
	calls, isPaired := pair(messages)
	r.target.identify(messages, calls)
	same := 0
	for same < min(len(messages), len(r.messages)) && isSame(&messages[same], &r.messages[same]) {
		same++
	}
	changed := same
	for n, c := range calls {
		if c.by >= same {
			break
		}
		if c != r.calls[n] || c.result >= same {
			changed = c.by
			break
		}
	}
	last := len(r.groups) - 1
	for last >= 0 && r.groups[last].from >= changed {
		last--
	}
	at := 0
	if last >= 0 {
		next, at = r.groups[last].from, r.groups[last].at
	}
	if at < len(r.body) {
		r.body = slices.Clip(r.body[:at])
	}
	r.groups = r.groups[:max(last, 0)]
	r.messages, r.calls, r.isPaired = messages, calls, isPaired
	return next
}

// isSame reports whether two messages are rendered alike. Of attachments, it compares only whether there
// are any, since each request renders them again. It ignores ToolCallID, because resume compares which
// result belongs to which call. System messages are rendered separately.
func isSame(a, b *reducer.Message) bool {
	return a.Role == b.Role && (a.Role == reducer.RoleSystem ||
		a.Content == b.Content && (len(a.Attachments) > 0) == (len(b.Attachments) > 0) && slices.Equal(a.ToolCalls, b.ToolCalls) &&
			a.Partial == b.Partial && areRefused(a, event.ContentCalls) == areRefused(b, event.ContentCalls) && isSameState(a.ProviderState, b.ProviderState))
}

// pair finds the result of each call: the first later result that has its id and belongs to no other call.
func pair(messages []reducer.Message) (calls []call, isPaired []bool) {
	isPaired = make([]bool, len(messages))
	waiting := map[string][]int{}
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if m.Role == reducer.RoleTool {
			waiting[m.ToolCallID] = append(waiting[m.ToolCallID], i)
		}
		if m.Role != reducer.RoleAssistant {
			continue
		}
		first := len(calls)
		for _, made := range m.ToolCalls {
			found := -1
			if n := len(waiting[made.ID]); n > 0 {
				found = waiting[made.ID][n-1]
				waiting[made.ID] = waiting[made.ID][:n-1]
				isPaired[found] = true
			}
			calls = append(calls, call{by: i, result: found})
		}
		slices.Reverse(calls[first:])
	}
	slices.Reverse(calls)
	return calls, isPaired
}

// identify sets the ids of calls.
func (t *Target) identify(messages []reducer.Message, calls []call) {
	times := map[string]int{}
	next := 0
	for i := range messages {
		m := &messages[i]
		if m.Role != reducer.RoleAssistant || len(m.ToolCalls) == 0 {
			continue
		}
		ids := t.callIDs(m)
		for n, made := range m.ToolCalls {
			id := made.ID
			if ids != nil && ids[n] != "" {
				calls[next].exact, id = ids[n], ids[n]
			}
			calls[next].earlier = times[id]
			times[id]++
			next++
		}
	}
}

// callIDs returns the ids that the target gave to the calls of a message; nil if they are unknown or ambiguous.
func (t *Target) callIDs(m *reducer.Message) []string {
	s := t.stateOf(m)
	if s == nil || len(s.CallIDs) != len(m.ToolCalls) {
		return nil
	}
	for i, id := range s.CallIDs {
		if slices.Contains(s.CallIDs[:i], id) {
			return nil
		}
	}
	return s.CallIDs
}

const (
	maxCached   = 64 << 20 // bytes; one conversation may use half
	listSize    = 1 << 10  // approximate overhead of a rendering
	messageSize = 256      // of a message
)

// size is approximate, in bytes. It includes the texts of the messages, although the caller may hold the same memory.
func (r rendered) size() int {
	size := listSize + cap(r.body)
	for i := range r.messages {
		m := &r.messages[i]
		size += messageSize + len(m.Content)
		if m.ProviderState != nil {
			size += messageSize + len(m.ProviderState.Data)
		}
		for _, c := range m.ToolCalls {
			size += messageSize + len(c.Arguments)
		}
		for _, a := range m.Attachments {
			size += messageSize + len(a.Source.Data) + len(a.Source.URL)
		}
	}
	return size
}

// renderings is an LRU cache of at most max bytes. It is safe for concurrent use.
type renderings struct {
	mu     sync.Mutex
	cached map[renderingKey]*list.Element
	order  list.List // of cachedRendering, most recently used first
	size   int
	max    int
}

// renderingKey is what a rendering depends on besides its messages.
type renderingKey struct {
	conversation string
	quirks       quirks
	origin       origin
	offersTools  bool
	lessons      lessons
}

type cachedRendering struct {
	rendered
	key  renderingKey
	size int
}

func newRenderings() *renderings {
	return &renderings{cached: map[renderingKey]*list.Element{}, max: maxCached}
}

func (t *Target) renderingKey() renderingKey {
	return renderingKey{t.Conversation, t.quirks, t.origin(), t.offersTools(), t.lessons}
}

// take removes a rendering, which then belongs to the caller. Concurrent callers get none.
func (r *renderings) take(key renderingKey) rendered {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.cached[key]; ok {
		return r.remove(e)
	}
	return rendered{}
}

func (r *renderings) put(key renderingKey, what rendered) {
	size := what.size()
	if key.conversation == "" || size > r.max/2 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.cached[key]; ok {
		r.remove(e)
	}
	r.cached[key] = r.order.PushFront(cachedRendering{what, key, size})
	for r.size += size; r.size > r.max; {
		r.remove(r.order.Back())
	}
}

func (r *renderings) remove(e *list.Element) rendered {
	k := r.order.Remove(e).(cachedRendering)
	delete(r.cached, k.key)
	r.size -= k.size
	return k.rendered
}
