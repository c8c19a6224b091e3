package event

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// SetDetails sets the title, labels, owner and archive mark. Absent fields keep their values; at least one is set. Models do
// not receive the details.
//
//schema:rules {"anyOf":[{"required":["title"]},{"required":["labels"]},{"required":["archived"]},{"required":["owner"]}],"properties":{"title":{"anyOf":[{"$ref":"Name"},{"const":""}],"maxLength":"$MaxTitleBytes"},"owner":{"$ref":"Name"}}}
//doc:effect none; sets the [details](#details) of the context; an empty `title` removes it, `labels` replace all
type SetDetails struct {
	// A line of text; empty: none.
	Title *string `json:"title,omitempty"`
	// Replace all labels; empty: none. Names have at most 64 bytes, values 512.
	Labels map[string]string `json:"labels,omitzero" schema:"max=MaxLabels,names.is=Name,items.max=MaxLabelBytes"`
	// Whether lists hide the context until it receives a user message.
	Archived *bool `json:"archived,omitempty"`
	// Who owns the context. The first owner stays. A gateway with authentication sets the subject of the credential and
	// accepts no other.
	Owner string `json:"owner,omitempty"`
}

// MaxTitleBytes is the maximum length of the title of a context.
const MaxTitleBytes = 200

const TagSetDetails Tag = "SetDetailsEvent"

func (SetDetails) Tag() Tag { return TagSetDetails }

func (b SetDetails) validate() error {
	if b.Title == nil && b.Labels == nil && b.Archived == nil && b.Owner == "" {
		return fieldf("title", "missing (want title, labels, archived or owner)")
	}
	if b.Title != nil && *b.Title != "" {
		if len(*b.Title) > MaxTitleBytes {
			return fieldf("title", "%d bytes (at most %d)", len(*b.Title), MaxTitleBytes)
		}
		if err := ValidateName("title", *b.Title); err != nil {
			return err
		}
	}
	if len(b.Labels) > 0 {
		if err := validateLabels(b.Labels); err != nil {
			return err
		}
	}
	if b.Owner != "" {
		return ValidateName("owner", b.Owner)
	}
	return nil
}

func (b SetDetails) Words() (subject, text string) {
	var parts []string
	switch {
	case b.Title == nil:
	case *b.Title == "":
		parts = append(parts, "no title")
	default:
		parts = append(parts, fmt.Sprintf("title %q", *b.Title))
	}
	if b.Labels != nil && len(b.Labels) == 0 {
		parts = append(parts, "no labels")
	}
	for _, name := range slices.Sorted(maps.Keys(b.Labels)) {
		parts = append(parts, fmt.Sprintf("label %s %q", name, b.Labels[name]))
	}
	switch {
	case b.Archived == nil:
	case *b.Archived:
		parts = append(parts, "archived")
	default:
		parts = append(parts, "not archived")
	}
	if b.Owner != "" {
		parts = append(parts, "owner "+b.Owner)
	}
	return "set details", strings.Join(parts, ", ")
}

func (SetDetails) Line() Line { return Line{slog.LevelInfo, "details changed", nil} }

func (SetDetails) example() Body {
	return SetDetails{Title: new("Plan of the trip"), Labels: map[string]string{"team": "support"}, Archived: new(true), Owner: "ann"}
}
