package transcript

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Operation is one operation of a JSON Patch (RFC 6902).
//
//schema:rules {"oneOf":[{"required":["value"],"properties":{"op":{"enum":["add","replace"]},"path":{"pattern":"^/entries/[0-9]+$"},"value":{"$ref":"Item"}}},{"required":["value"],"properties":{"op":{"const":"add"},"path":{"pattern":"^/entries/[0-9]+/content/(chunks/-|progress)$"},"value":{"type":"string"}}},{"properties":{"op":{"const":"remove"},"path":{"pattern":"^/entries/[0-9]+$"}},"not":{"required":["value"]}}]}
type Operation struct {
	Op string `json:"op" schema:"enum=add|replace|remove"` // add, remove or replace
	// `/entries/N`, or `/entries/N/content/chunks/-` or `/entries/N/content/progress` for a text.
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"` // an Item, or a text
}

// Patcher maintains the document of a log and computes patches. It is not safe for concurrent use.
// The cost of an event depends only on the entries that change and those behind an insertion or
// a removal.
type Patcher struct {
	state   State
	version int
	slots   []*slot // in document order, with removed entries
	visible int
	recent  *list.List // slots by their last change, newest first
	calls   map[callKey]*slot
	streams map[string]*slot
}

// slot is the position of an entry. Slots never change their order.
type slot struct {
	entry Entry
	after int // counter of the event before it, the first sort key; then insertion order
	index int // number of entries before the slot
	// Versions of changes. removed is 0 while visible; replaced ignores appended text and progress.
	added, removed, replaced, changed int
	text                              *streamedText // nil unless the entry streams
	recent                            *list.Element
}

type streamedText struct {
	strings.Builder
	lengths []struct{ version, length int }
}

func (g *streamedText) add(version int, text string) {
	g.WriteString(text)
	g.lengths = append(g.lengths, struct{ version, length int }{version, g.Len()})
}

func (g *streamedText) since(version int) string {
	i := sort.Search(len(g.lengths), func(i int) bool { return g.lengths[i].version > version })
	if i == 0 {
		return g.String()
	}
	return g.String()[g.lengths[i-1].length:]
}

// NewPatcher returns a Patcher with an empty document at version 0.
func NewPatcher() *Patcher {
	return &Patcher{recent: list.New(), calls: map[callKey]*slot{}, streams: map[string]*slot{}}
}

// Version returns the number of applied events that had an effect.
func (p *Patcher) Version() int { return p.version }

// Document returns the newest version, which must not be modified.
func (p *Patcher) Document() Document {
	entries := make([]Item, 0, p.visible)
	for _, s := range p.slots {
		if s.removed == 0 {
			entries = append(entries, s.item())
		}
	}
	return Document{Entries: entries}
}

// Apply folds an event and returns the patch, or nil if the event had no effect.
func (p *Patcher) Apply(e event.Event) []Operation {
	state, effects := Reduce(p.state, e)
	p.state = state
	if len(effects) == 0 {
		return nil
	}
	before := p.version
	p.version++
	for _, effect := range effects {
		p.applyEffect(effect, e)
	}
	patch, _ := p.Since(before)
	return patch
}

// Since returns a patch that changes each entry at most once. ok is false for an unknown version;
// its viewer needs the whole document.
func (p *Patcher) Since(version int) (patch []Operation, ok bool) {
	if version < 0 || version > p.version {
		return nil, false
	}
	var changed []*slot
	for e := p.recent.Front(); e != nil && e.Value.(*slot).changed > version; e = e.Next() {
		changed = append(changed, e.Value.(*slot))
	}
	// A patch is applied from front to back, so paths use the newest indices. Of several slots with
	// the same index, all but the last are removed.
	slices.SortFunc(changed, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(a.index, b.index), -cmp.Compare(a.removed, b.removed))
	})
	patch = make([]Operation, 0, len(changed))
	for _, s := range changed {
		path := fmt.Sprintf("/entries/%d", s.index)
		existed := s.added <= version && (s.removed == 0 || s.removed > version)
		switch {
		case s.removed > 0 && existed:
			patch = append(patch, Operation{Op: "remove", Path: path})
		case s.removed > 0:
		case !existed:
			patch = append(patch, Operation{Op: "add", Path: path, Value: s.item()})
		case s.replaced > version:
			patch = append(patch, Operation{Op: "replace", Path: path, Value: s.item()})
		case s.text == nil:
			patch = append(patch, Operation{Op: "add", Path: path + "/content/progress", Value: s.entry.Progress})
		default:
			patch = append(patch, Operation{Op: "add", Path: path + "/content/chunks/-", Value: s.text.since(version)})
		}
	}
	return patch, true
}

func (p *Patcher) applyEffect(effect Effect, e event.Event) {
	switch effect := effect.(type) {
	case AppendEntry:
		p.add(effect)
	case AppendText:
		s := p.streams[effect.ID]
		s.text.add(p.version, effect.Text)
		p.markChanged(s)
	case RemoveEntry:
		p.remove(p.streams[effect.ID])
		delete(p.streams, effect.ID)
	case UpdateToolStatus:
		s := p.calls[callKey{effect.SessionID, effect.ToolCallID}]
		s.entry.EntryType.Status = effect.Status
		s.entry.EntryType.ActionType = &effect.ActionType
		s.entry.EntryType.DurationMs = effect.DurationMs
		s.entry.ResultTimestamp = effect.Timestamp
		s.entry.Content, s.entry.Progress = effect.Content, ""
		s.entry.EntryType.Question = nil
		if approval := s.entry.EntryType.Approval; approval != nil {
			decided := *approval
			decided.Arguments = ""
			s.entry.EntryType.Approval = &decided
		}
		s.replaced = p.version
		p.markChanged(s)
	case UpdateApproval:
		s := p.calls[callKey{effect.SessionID, effect.ToolCallID}]
		s.entry.EntryType.Status, s.entry.EntryType.Approval = effect.Status, &effect.Approval
		s.entry.EntryType.ActionType, s.entry.Content = &effect.ActionType, effect.Content
		s.entry.EntryType.Question = effect.Question
		s.replaced = p.version
		p.markChanged(s)
	case UpdateProgress:
		s := p.calls[callKey{effect.SessionID, effect.ToolCallID}]
		s.entry.Progress = effect.Text
		p.markChanged(s)
	case EmitWarning:
		p.add(AppendEntry{ID: e.ID, Entry: Entry{
			Timestamp: timeOf(e),
			EntryType: EntryType{Type: SystemMessage, Subtype: SubtypeTranscript, Level: Warning},
			Content:   effect.Message,
			Metadata:  effect.Metadata,
		}})
	}
}

func (p *Patcher) add(effect AppendEntry) {
	s := p.insert(cmp.Or(event.Counter(effect.After), p.state.newest))
	s.entry = effect.Entry
	s.replaced = p.version
	switch {
	case effect.Entry.Chunks != nil:
		s.text = &streamedText{}
		s.text.add(p.version, strings.Join(effect.Entry.Chunks, ""))
		p.streams[effect.ID] = s
	case effect.Entry.EntryType.Type == ToolUse:
		p.calls[callKey{effect.SessionID, effect.ID}] = s
	}
	p.markChanged(s)
}

// insert reuses the first slot at the position that was removed in this version, so that viewers see
// the entries of a stream replaced in order.
func (p *Patcher) insert(after int) *slot {
	i := len(p.slots)
	for ; i > 0 && p.slots[i-1].after > after; i-- {
		p.slots[i-1].index++
	}
	p.visible++
	if reused := p.removedBefore(i, after); reused < i {
		for _, s := range p.slots[reused+1 : i] {
			s.index++
		}
		p.slots[reused].removed = 0
		return p.slots[reused]
	}
	s := &slot{after: after, index: p.visible - 1, added: p.version}
	if i < len(p.slots) {
		s.index = p.slots[i].index - 1
	}
	s.recent = p.recent.PushFront(s)
	p.slots = slices.Insert(p.slots, i, s)
	return s
}

// removedBefore searches the removed slots directly before i that have the same after. It returns the
// first that was removed in this version, else i.
func (p *Patcher) removedBefore(i, after int) int {
	first := i
	for ; i > 0 && p.slots[i-1].after == after && p.slots[i-1].removed != 0; i-- {
		if p.slots[i-1].removed == p.version {
			first = i - 1
		}
	}
	return first
}

func (p *Patcher) remove(s *slot) {
	for i := len(p.slots) - 1; p.slots[i] != s; i-- {
		p.slots[i].index--
	}
	p.visible--
	s.entry, s.text = Entry{}, nil
	s.removed = p.version
	p.markChanged(s)
}

func (p *Patcher) markChanged(s *slot) {
	s.changed = p.version
	p.recent.MoveToFront(s.recent)
}

func (s *slot) item() Item {
	entry := s.entry
	if s.text != nil {
		entry.Chunks = []string{s.text.String()}
	}
	return Item{Type: NormalizedEntry, Content: entry}
}
