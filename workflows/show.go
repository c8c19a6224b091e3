package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/reducer"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

var (
	attributeStatus = temporal.NewSearchAttributeKeyKeyword(wire.AttributeStatus)
	attributeTurns  = temporal.NewSearchAttributeKeyInt64(wire.AttributeTurns)
	attributeModel  = temporal.NewSearchAttributeKeyKeyword(wire.AttributeModel)
)

// showTurnsEvery is how often the number of turns is shown while nothing else
// changes.
const showTurnsEvery = 5 * time.Second

// show tells the Temporal UI what goes on. Search attributes cost an event in
// the history, and the server's list a third of what a turn costs it, so they
// change with the status and not in between. An answer that is over before the
// session has heard that it is on its way never shows, and while such answers
// follow one another quickly, the number of turns lags behind.
func (r *run) show() {
	workflow.SetCurrentDetails(r.ctx, details(r.session))
	status := wire.StatusOf(r.session)
	isUnheard := status == wire.StatusAnswering && r.session.Request.Through == ""
	hasNews := status != r.status || r.session.Turns != r.turns && (r.now().Sub(r.shownAt) >= showTurnsEvery)
	if !r.attributes || r.status != "" && isUnheard || !hasNews {
		return
	}
	r.status, r.turns, r.shownAt = status, r.session.Turns, r.now()
	updates := []temporal.SearchAttributeUpdate{
		attributeStatus.ValueSet(string(status)),
		attributeTurns.ValueSet(int64(r.session.Turns)),
	}
	if r.session.Model != "" {
		updates = append(updates, attributeModel.ValueSet(cut(r.session.Model, shownModel)))
	}
	if err := workflow.UpsertTypedSearchAttributes(r.ctx, updates...); err != nil {
		workflow.GetLogger(r.ctx).Warn("The search attributes were not set", "error", err)
	}
}

// How much of a conversation the details show.
const (
	shownMessages = 10
	shownRunes    = 600
	shownTags     = 150
	// A keyword may have 255 characters on some databases.
	shownModel = 200
)

// details is the end of the conversation as Markdown.
func details(s reducer.Session) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · %s · %s", wire.StatusOf(s), count(s.EventCount, "event"), count(s.Turns, "turn"))
	if s.Model != "" {
		fmt.Fprintf(&b, " · %s", s.Model)
	}
	messages := s.Reduced.Messages
	if more := len(messages) - shownMessages; more > 0 {
		fmt.Fprintf(&b, "\n\n_%d earlier messages_", more)
		messages = messages[more:]
	}
	for _, m := range messages {
		fmt.Fprintf(&b, "\n\n**%s**%s: %s", m.Role, partialMark(m), cut(m.Content, shownRunes))
		for _, a := range m.Attachments {
			fmt.Fprintf(&b, " _[%s]_", a.Name())
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " `%s(%s)`", c.Name, cut(c.Arguments, 100))
		}
	}
	return b.String()
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func partialMark(m reducer.Message) string {
	if m.Partial {
		return " _(cut off)_"
	}
	return ""
}

func cut(s string, runes int) string {
	n := 0
	for i := range s {
		if n == runes {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
