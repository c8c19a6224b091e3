package llm

import (
	"container/list"
	"slices"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// rendered is what was rendered of a conversation, for its next request to go on
// from.
type rendered struct {
	messages []reducer.Message
	// calls are all calls, in the order of the conversation.
	calls  []call
	groups []group
	// body is the JSON of the groups that are kept, with a comma before each
	// message. It only grows: requests that are being sent still read it.
	body []byte
}

// call is a call of a tool: the indexes of the message that makes it and of its
// result; -1 without one.
type call struct{ by, result int }

// group is a run of messages that are rendered by themselves: nothing that
// stands before or behind them makes a difference, but for the results of their
// calls. Where no roles must alternate it is a single message.
//
// The first group is not kept, since the system message has to do with it. Nor
// is one with attachments: they are large, and what they refer to may change, or
// be there again. Nor is the last, which may go on.
type group struct {
	from      int  // its first message
	at        int  // where its JSON begins in the body, or would
	isFresh   bool // it has attachments
	hasAnswer bool
}

// resume drops what would be another for these messages, and returns the first
// message that is to be rendered.
//
// What is rendered of a group depends on its messages, on the results of its
// calls, and, for its end, on the message with which the next one begins. So the
// groups stay that stand before the last one to begin with a message that is the
// same as before.
func (r *rendering) resume(messages []reducer.Message) (next int) {
	calls, isPaired := pair(messages)
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

// isSame reports whether two messages look the same when they are rendered, but
// for their attachments, and for which call they are the result of. System
// messages are rendered apart.
func isSame(a, b *reducer.Message) bool {
	return a.Role == b.Role && (a.Role == reducer.RoleSystem ||
		a.Content == b.Content && (len(a.Attachments) > 0) == (len(b.Attachments) > 0) && slices.Equal(a.ToolCalls, b.ToolCalls))
}

// pair finds the result of every call: the first one with the call's id that
// stands behind it and is not another call's. isPaired tells of each message
// whether it is such a result.
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

const (
	// maxKept bounds what is kept of all conversations, in bytes. One may have
	// half of it.
	maxKept = 64 << 20
	// listSize and messageSize are about what a rendering and a message take
	// besides their text.
	listSize    = 1 << 10
	messageSize = 256
)

// size is about how much memory it holds. The messages count, although the session
// shares them while it is here.
func (r rendered) size() int {
	size := listSize + cap(r.body)
	for i := range r.messages {
		m := &r.messages[i]
		size += messageSize + len(m.Content)
		for _, c := range m.ToolCalls {
			size += messageSize + len(c.Arguments)
		}
		for _, a := range m.Attachments {
			size += messageSize + len(a.Source.Data) + len(a.Source.URL)
		}
	}
	return size
}

// renderings keeps what was rendered of the conversations that were sent last, as
// many as fit into max bytes. It is safe for concurrent use.
type renderings struct {
	mu    sync.Mutex
	kept  map[renderingKey]*list.Element
	order list.List // of keptRendering, the one used last in front
	size  int
	max   int
}

// renderingKey names a rendering: providers differ in what they take.
type renderingKey struct {
	conversation string
	quirks       quirks
}

type keptRendering struct {
	rendered
	key  renderingKey
	size int
}

func newRenderings() *renderings {
	return &renderings{kept: map[renderingKey]*list.Element{}, max: maxKept}
}

func (t *Target) renderingKey() renderingKey { return renderingKey{t.Conversation, t.quirks} }

// take hands out what is kept, if anything. It belongs to the caller then: who
// asks at the same time finds nothing.
func (r *renderings) take(key renderingKey) rendered {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.kept[key]; ok {
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
	if e, ok := r.kept[key]; ok {
		r.remove(e)
	}
	r.kept[key] = r.order.PushFront(keptRendering{what, key, size})
	for r.size += size; r.size > r.max; {
		r.remove(r.order.Back())
	}
}

func (r *renderings) remove(e *list.Element) rendered {
	k := r.order.Remove(e).(keptRendering)
	delete(r.kept, k.key)
	r.size -= k.size
	return k.rendered
}
