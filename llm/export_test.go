package llm

// KeepAtMost bounds what is kept of conversations, in bytes.
func (a *Adapter) KeepAtMost(bytes int) { a.renderings.max = bytes }

// Kept are the conversations of which something is kept, the one used last in
// front, and how many bytes that is.
func (a *Adapter) Kept() (conversations []string, size int) {
	for e := a.renderings.order.Front(); e != nil; e = e.Next() {
		conversations = append(conversations, e.Value.(keptRendering).key.conversation)
	}
	return conversations, a.renderings.size
}
