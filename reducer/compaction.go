package reducer

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// compact shortens the messages that the event covers. It has no effect if ThroughEventID is not the
// event of a message.
func (f *fold) compact(eventID string, body event.Compacted) {
	end := coveredBy(f.Messages, body.ThroughEventID)
	if end == 0 {
		return
	}
	if body.Strategy == event.StrategyDropToolResults {
		for i, m := range f.Messages[:end] {
			if droppable(m) > 0 {
				f.own()
				f.Messages[i].Content = event.DroppedResult
			}
		}
		return
	}
	var kept []Message
	if f.Messages[0].Role == RoleSystem {
		kept = append(kept, f.Messages[0])
	}
	if body.Summary != "" {
		kept = append(kept, Message{Role: RoleUser, Content: event.SummaryIntroduction + body.Summary, EventID: eventID, Summary: true})
	}
	if question := questionOf(f.Messages, end); question >= 0 {
		kept = append(kept, f.Messages[question])
	}
	rest := f.Messages[end:]
	f.Messages, f.ownMessages = shared[Message, *Message](kept).clone(len(rest)+8), true
	for _, m := range rest {
		f.append(m)
	}
}

// coveredBy returns how many messages a compaction covers, including the system message: those up to
// the one of the event through, and its results. 0: there is no such message.
func coveredBy(messages []Message, through string) int {
	for i, m := range slices.Backward(messages) {
		if through != "" && m.EventID == through && m.Role != RoleSystem {
			return skipResults(messages, i+1)
		}
	}
	return 0
}

// questionOf returns the index of the covered user message that stays because its answer continues
// after the cut; -1 for none.
func questionOf(messages []Message, end int) int {
	if end < len(messages) && messages[end].Role == RoleUser {
		return -1
	}
	for i, m := range slices.Backward(messages[:end]) {
		if isQuestion(m) {
			return i
		}
	}
	return -1
}

// droppable returns how many bytes [event.StrategyDropToolResults] saves in a message.
func droppable(m Message) int {
	if m.Role != RoleTool {
		return 0
	}
	return max(0, len(m.Content)-len(event.DroppedResult))
}

// MaxSummaryWords is the length of a summary that a model is asked for.
const MaxSummaryWords = 1000

// Estimates of the size of a request, in bytes.
const (
	messageBytes    = 16 // without its content
	attachmentBytes = 3000
	summaryBytes    = 8 * MaxSummaryWords
)

func sizeOf(m Message) int {
	size := messageBytes + len(m.Content)
	for _, c := range m.ToolCalls {
		size += messageBytes + len(c.Name) + len(c.Arguments)
	}
	for _, a := range m.Attachments {
		if event.MediaOf(a.MediaType) == event.MediaText {
			size += max(len(a.Source.Data), int(min(a.Size, event.MaxAttachmentBytes)))
		} else {
			size += attachmentBytes
		}
	}
	return size
}

// cut is a possible compaction of the oldest messages: those before the index end. Apart from tool
// results, the last of them is the message of the event through. The zero value frees nothing.
type cut struct {
	strategy event.Strategy
	end      int
	through  string
	freed    int // estimated bytes
}

// bestCut returns the cut of the first strategy that frees enough of the next attempt, else of the first
// one that frees anything. Tool results that the model has not read yet are a last resort: they are cut if
// no other cut frees anything and the provider rejected the request, because it would reject every later
// request, too.
func (d *decision) bestCut(strategies []event.Strategy, enough int, isRejected bool) cut {
	messages := d.Reduced.Messages
	if best := bestOf(messages, d.keptFrom(newestInput), strategies, enough); best.freed > 0 || !isRejected {
		return best
	}
	best := bestOf(messages, d.keptFrom(newestQuestion), strategies, enough)
	if best.freed == 0 && slices.Contains(strategies, event.StrategyDropToolResults) {
		best = cutOf(messages, len(messages), event.StrategyDropToolResults, enough)
	}
	return best
}

func bestOf(messages []Message, end int, strategies []event.Strategy, enough int) (best cut) {
	for _, strategy := range strategies {
		c := cutOf(messages, end, strategy, enough)
		if c.freed >= enough {
			return c
		}
		if best.freed == 0 {
			best = c
		}
	}
	return best
}

// cutOf returns the smallest cut of messages[:end] that frees enough, else the one that frees the most.
func cutOf(messages []Message, end int, strategy event.Strategy, enough int) (best cut) {
	sum := cutSum{strategy: strategy}
	for i, m := range messages[:end] {
		if m.Role == RoleSystem {
			continue
		}
		sum.add(m)
		isLast := i+1 == len(messages)
		if !isLast && messages[i+1].Role == RoleTool || event.Counter(sum.through) == 0 {
			continue
		}
		keepsQuestion := isLast || messages[i+1].Role != RoleUser
		if freed := sum.freed(keepsQuestion); freed > best.freed {
			best = cut{strategy, i + 1, sum.through, freed}
		}
		if best.freed >= enough {
			break
		}
	}
	return best
}

// cutSum is the sum over the messages that a cut covers.
type cutSum struct {
	strategy         event.Strategy
	through          string // as in cut
	removed          int    // messages
	covered, dropped int    // bytes of messages and of tool results
	question         int    // bytes of the newest question; 0: none
}

func (s *cutSum) add(m Message) {
	if m.Role != RoleTool {
		s.through = m.EventID
	}
	s.covered, s.dropped = s.covered+sizeOf(m), s.dropped+droppable(m)
	if isQuestion(m) {
		s.question = sizeOf(m)
	}
	if !m.Summary || s.strategy == event.StrategyTruncate {
		s.removed++
	}
}

// freed estimates how many bytes the cut frees.
func (s *cutSum) freed(keepsQuestion bool) int {
	freed, kept := s.covered, 0
	if s.question > 0 && keepsQuestion {
		freed, kept = freed-s.question, 1
	}
	switch {
	case s.strategy == event.StrategyDropToolResults:
		return s.dropped
	case s.removed <= kept:
		return 0
	case s.strategy == event.StrategySummarise:
		return freed - min(summaryBytes, freed/4)
	}
	return freed
}

// keptFrom returns the index from which all messages must stay. It is the lowest of three: the result
// of find for the messages of the next attempt, the index of the first message that the attempt lacks,
// and the index of the newest message.
func (d *decision) keptFrom(find func([]Message) int) int {
	all, included := d.Reduced.Messages, MessagesOf(d.Session)
	prefix := 0
	for prefix < len(included) && included[prefix].EventID == all[prefix].EventID {
		prefix++
	}
	return max(0, min(prefix, find(included), len(all)-1))
}

func isQuestion(m Message) bool { return m.Role == RoleUser && !m.Summary }

// newestQuestion returns the index of the newest user message; len(messages) if there is none.
func newestQuestion(messages []Message) int {
	for i, m := range slices.Backward(messages) {
		if isQuestion(m) {
			return i
		}
	}
	return len(messages)
}

// newestInput returns the index of the newest answer if it has tool calls, whose results the model has
// not read; else that of the newest user message.
func newestInput(messages []Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == RoleAssistant && len(m.ToolCalls) > 0 {
			return i
		}
		if m.Role == RoleAssistant {
			break
		}
	}
	return newestQuestion(messages)
}
