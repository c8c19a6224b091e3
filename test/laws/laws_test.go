package laws

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer/transcript"
)

func logOf(bodies ...event.Body) (log []event.Event) {
	for i, body := range bodies {
		e := event.New(body)
		e.ID = event.FormatID("demo", i+1)
		log = append(log, e)
	}
	return log
}

func TestRequestsEndOnceAndDoNotOverlap(t *testing.T) {
	begins := func(id string, attempt int) event.Body {
		return event.LLMRequestStarted{RequestID: id, Attempt: attempt}
	}
	ends := func(id string) event.Body { return event.LLMRequestCompleted{RequestID: id} }
	for name, test := range map[string]struct {
		log  []event.Event
		want string
	}{
		"two":                {logOf(begins("r1", 1), begins("r1", 2), ends("r1"), begins("r2", 1), event.LLMRequestFailed{RequestID: "r2"}), ""},
		"never sent":         {logOf(event.LLMRequestFailed{RequestID: "r1"}), ""},
		"overlap":            {logOf(begins("r1", 1), begins("r2", 1)), `of request r2, which ended before: false; "r1" is running`},
		"ends twice":         {logOf(begins("r1", 1), ends("r1"), ends("r1")), "ended before: true"},
		"ends another":       {logOf(begins("r1", 1), ends("r2")), "of request r2"},
		"starts again":       {logOf(begins("r1", 1), ends("r1"), begins("r1", 2)), "ended before: true"},
		"a repeated attempt": {logOf(begins("r1", 1), begins("r1", 1)), "attempt 1 of r1, after attempt 1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Requests(test.log)
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestASecretInALogIsFound(t *testing.T) {
	require.NoError(t, Secret(logOf(event.UserMessage{Content: "x"}), "sk-1"))
	require.ErrorContains(t, Secret(logOf(event.UserMessage{Content: "it is sk-1"}), "sk-1"), "contains the secret")
}

func TestTranscriptsAreComparedWithoutProgress(t *testing.T) {
	document := func(bodies ...event.Body) transcript.Document {
		p := transcript.NewPatcher()
		for _, e := range logOf(bodies...) {
			p.Apply(e)
		}
		return p.Document()
	}
	a, b := event.UserMessage{Content: "a"}, event.UserMessage{Content: "b"}
	got := document(a)
	got.Entries[0].Content.Progress = "half"
	require.NoError(t, Transcript(logOf(a), got))
	require.ErrorContains(t, Transcript(logOf(b), got), "entry 0")
	require.ErrorContains(t, Transcript(logOf(a), transcript.Document{}), "entry 0 of 0")
	require.ErrorContains(t, Transcript(logOf(a), document(a, b)), "entry 1 of 2")
}

func TestTheFoldOfALogCanBeCut(t *testing.T) {
	log := logOf(event.SessionStarted{}, event.UserMessage{Content: "a"}, event.AssistantMessage{Content: "b", ThroughEventID: "demo:0002"})
	for cut := range log {
		require.NoError(t, Fold(log, cut))
	}
}
