package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

var (
	attributeStatus = temporal.NewSearchAttributeKeyKeyword(wire.AttributeStatus)
	attributeTurns  = temporal.NewSearchAttributeKeyInt64(wire.AttributeTurns)
	attributeModel  = temporal.NewSearchAttributeKeyKeyword(wire.AttributeModel)
	attributeTitle  = temporal.NewSearchAttributeKeyKeyword(wire.AttributeTitle)
	attributeLabels = temporal.NewSearchAttributeKeyKeywordList(wire.AttributeLabels)
)

// showTurnsEvery is the minimum interval between updates that do not change the status, after the first turn.
const showTurnsEvery = time.Minute

// shown is what the search attributes show.
type shown struct {
	Status wire.Status `json:"status,omitempty"`
	Turns  int         `json:"turns,omitempty"`
	At     time.Time   `json:"at,omitzero"` // of the update
	Title  string      `json:"title,omitempty"`
	Labels []string    `json:"labels,omitempty"` // NAME=VALUE, sorted
}

// updateVisibility sets the details and search attributes for the Temporal UI. An update of search
// attributes costs a history event and a third of what the server spends on a turn. Therefore, the
// status shows no answers, and the number of turns and the model lag. Details are shown at once: they change seldom.
func (r *run) updateVisibility() {
	workflow.SetCurrentDetails(r.ctx, details(r.session))
	if !r.opened.SearchAttributes {
		return
	}
	status := wire.ListedStatusOf(r.session)
	isStale := r.session.Turns != r.shown.Turns && (r.shown.Turns == 0 || r.now().Sub(r.shown.At) >= showTurnsEvery)
	updates := r.detailUpdates()
	if status == r.shown.Status && !isStale && len(updates) == 0 {
		return
	}
	r.shown.Status, r.shown.Turns, r.shown.At = status, r.session.Turns, r.now()
	updates = append(updates, attributeStatus.ValueSet(string(status)), attributeTurns.ValueSet(int64(r.session.Turns)))
	if r.session.Model != "" {
		updates = append(updates, attributeModel.ValueSet(cut(r.session.Model, shownKeyword)))
	}
	if err := workflow.UpsertTypedSearchAttributes(r.ctx, updates...); err != nil {
		workflow.GetLogger(r.ctx).Warn("the search attributes were not set", "error", err)
	}
}

// detailUpdates shows a title and labels that changed.
func (r *run) detailUpdates() (updates []temporal.SearchAttributeUpdate) {
	if !r.opened.DetailAttributes {
		return nil
	}
	title, labels := r.session.Details.Title, labelsOf(r.session.Details)
	if title != r.shown.Title {
		update := attributeTitle.ValueUnset()
		if title != "" {
			update = attributeTitle.ValueSet(title)
		}
		updates = append(updates, update)
	}
	if !slices.Equal(labels, r.shown.Labels) {
		update := attributeLabels.ValueUnset()
		if len(labels) > 0 {
			update = attributeLabels.ValueSet(labels)
		}
		updates = append(updates, update)
	}
	r.shown.Title, r.shown.Labels = title, labels
	return updates
}

func labelsOf(d reducer.Details) (labels []string) {
	for _, name := range workflow.DeterministicKeys(d.Labels) {
		labels = append(labels, cut(name+"="+d.Labels[name], shownKeyword))
	}
	return labels
}

// Limits of what the Temporal UI shows.
const (
	shownMessages = 10
	shownRunes    = 600 // of a message
	shownTags     = 150 // runes of the event types of a record
	shownKeyword  = 200 // runes of a keyword; some databases limit it to 255 characters
)

// details returns the end of the conversation as Markdown.
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

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func partialMark(m reducer.Message) string {
	if m.Partial {
		return " _(partial)_"
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
