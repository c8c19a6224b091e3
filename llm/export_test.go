package llm

import "strings"

// Accepts returns the kinds of media that are sent as content parts, separated by spaces.
func (t *Target) Accepts() string {
	var names []string
	for _, name := range []string{"image", "pdf", "audio"} {
		if t.quirks.accepts.has(partMedia[name]) && !t.quirks.textOnly {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// KeepAtMost bounds the cache of renderings, in bytes.
func (a *Adapter) KeepAtMost(bytes int) { a.renderings.max = bytes }

// Cached returns the cached conversations, most recently used first, and the size of the cache in
// bytes.
func (a *Adapter) Cached() (conversations []string, size int) {
	for e := a.renderings.order.Front(); e != nil; e = e.Next() {
		conversations = append(conversations, e.Value.(cachedRendering).key.conversation)
	}
	return conversations, a.renderings.size
}

// Remember adds a lesson of a model.
func (a *Adapter) Remember(baseURL, model, lesson string) {
	a.experience.remember(destination{baseURL, model}, lessons("").with(lesson))
}

// Remembered returns the number of models with lessons.
func (a *Adapter) Remembered() int { return len(a.experience.known) }
