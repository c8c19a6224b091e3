package reducer

import (
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Offered is the newest [event.ToolsOffered].
type Offered struct {
	EventID  string   `json:"eventId"`
	Patterns []string `json:"patterns"`
	Hash     string   `json:"hash"`

	Withheld []event.WithheldTool `json:"withheld,omitempty"`
}

// MustOffer returns the event with the tools that the next attempt must offer; "" for the current
// tools of its worker. The steps of a turn offer the same tools, unless the context names others.
func MustOffer(s Session) string {
	if s.Request == nil || s.Request.Steps == 0 || s.Offered == nil {
		return ""
	}
	if !slices.Equal(s.Offered.Patterns, s.Reduced.Config.Tools.Patterns()) {
		return ""
	}
	return s.Offered.EventID
}

func (d *decision) recordOffered(offered *event.ToolsOffered) {
	if offered == nil || d.Offered != nil && d.Offered.Hash == offered.Hash() {
		return
	}
	body := *offered
	body.RequestID, body.Attempt = d.Request.ID, d.Request.Attempt
	if event.New(body).Validate() == nil {
		d.record(body)
	}
}
