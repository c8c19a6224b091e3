package reducer

import "github.com/seed-9ed7edd4/chronicle/event"

// Details are what people know a context by ([event.SetDetails]).
type Details struct {
	Title    string            `json:"title,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Archived bool              `json:"archived,omitempty"`
	Owner    string            `json:"owner,omitempty"` // the first that an event named
}

// With returns the details after an event, whose labels they share. A user message takes the context out of the archive. A
// fork has the title and the labels of its origin.
func (d Details) With(body event.Body) Details {
	switch body := body.(type) {
	case event.SetDetails:
		if body.Title != nil {
			d.Title = *body.Title
		}
		if body.Labels != nil {
			d.Labels = nil
			if len(body.Labels) > 0 {
				d.Labels = body.Labels
			}
		}
		if d.Owner == "" {
			d.Owner = body.Owner
		}
	case event.SessionStarted:
		if body.ForkedFrom != "" {
			d.Owner = ""
		}
	}
	if archived, ok := Archives(body); ok {
		d.Archived = archived
	}
	return d
}

// Archives returns whether a context is archived after an event; not ok: as before it.
func Archives(body event.Body) (archived, ok bool) {
	switch body := body.(type) {
	case event.SetDetails:
		return body.Archived != nil && *body.Archived, body.Archived != nil
	case event.UserMessage:
		return false, true
	case event.SessionStarted:
		return false, body.ForkedFrom != ""
	}
	return false, false
}
