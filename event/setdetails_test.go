package event_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestDetailsHaveBounds(t *testing.T) {
	many := map[string]string{}
	for n := range event.MaxLabels + 1 {
		many[fmt.Sprint(n)] = ""
	}
	for want, details := range map[string]event.SetDetails{
		"SetDetailsEvent.title: missing (want title, labels, archived or owner)": {},
		"SetDetailsEvent.title: 201 bytes (at most 200)":                         {Title: new(strings.Repeat("x", 201))},
		"SetDetailsEvent.title: 257 bytes (at most 200)":                         {Title: new(strings.Repeat("x", 257))},
		"SetDetailsEvent.title: empty":                                           {Title: new(" ")},
		"SetDetailsEvent.title: has a control character":                         {Title: new("two\nlines")},
		"SetDetailsEvent.labels: want 1 to 16 labels, got 17":                    {Labels: many},
		"SetDetailsEvent.labels: want values of at most 512 bytes":               {Labels: map[string]string{"x": strings.Repeat("x", 513)}},
		"SetDetailsEvent.labels: want names of 1 to 64 bytes":                    {Labels: map[string]string{"": "x"}},
		"SetDetailsEvent.owner: want at most 256 bytes":                          {Owner: strings.Repeat("x", 257)},
	} {
		require.ErrorContains(t, event.New(details).Validate(), want)
	}
	for _, details := range []event.SetDetails{
		{Title: new("")}, {Title: new(strings.Repeat("x", 200))}, {Labels: map[string]string{}}, {Archived: new(false)}, {Owner: "ann"},
	} {
		require.NoError(t, event.New(details).Validate())
	}
}

// An absent field keeps a detail, an empty one removes it.
func TestEmptyDetailsSurviveTheirJSON(t *testing.T) {
	for want, details := range map[string]event.SetDetails{
		`{"_tag":"SetDetailsEvent","title":"","labels":{},"archived":false}`: {Title: new(""), Labels: map[string]string{}, Archived: new(false)},
		`{"_tag":"SetDetailsEvent","archived":true}`:                         {Archived: new(true)},
	} {
		data, err := event.New(details).MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, want, string(data))
		events, err := event.DecodeInput(data)
		require.NoError(t, err)
		require.Equal(t, details, events[0].Body)
	}
}

func TestDetailsInWords(t *testing.T) {
	for want, details := range map[string]event.SetDetails{
		`no title, no labels, not archived`:                     {Title: new(""), Labels: map[string]string{}, Archived: new(false)},
		`title "A trip", label a "1", label b "2", owner Ann X`: {Title: new("A trip"), Labels: map[string]string{"b": "2", "a": "1"}, Owner: "Ann X"},
	} {
		_, text := details.Words()
		require.Equal(t, want, text)
	}
}
