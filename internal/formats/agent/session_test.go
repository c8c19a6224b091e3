package agent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/agent"
)

// claudeText is a line of a session file.
func claudeText(role, uuid, text, more string) string {
	return fmt.Sprintf(`{"parentUuid":null,%s"sessionId":"s1","type":"%s","message":{"role":"%[2]s","content":[{"type":"text","text":"%s"}]},"uuid":"%s"}`+"\n", more, role, text, uuid)
}

func TestOtherLogsAreRefused(t *testing.T) {
	const none = "log not recognized (want Claude Code: --output-format stream-json, or a file of ~/.claude/projects; " +
		"Codex CLI: a rollout file of ~/.codex/sessions; Droid CLI: --output-format stream-json, or a file of ~/.factory/sessions)"
	const notDroid = "log not recognized: not of format droid (want Droid CLI: --output-format stream-json, or a file of ~/.factory/sessions)"
	foreign := `{"type":"weather","city":"Paris"}` + "\n"
	for _, c := range []struct {
		name, log string
		format    agent.Format
		want      string // "": accepted
	}{
		{"nothing", "", "", none},
		{"blank lines", "\ufeff\r\n\n", "", none},
		{"plain text", "Compiling\nDone\n", "", none},
		{"JSON lines of another program", foreign + `{"level":"info","msg":"ready"}`, "", none},
		{"messages for a model", `{"messages":[{"role":"user","content":"Hello"}]}`, "", none},
		{"events of Chronicle", `{"_tag":"UserMessageEvent","content":"Hello"}`, "", none},
		{"the session of another agent", `{"type":"session","version":3,"id":"s1"}` + "\n" + `{"type":"message","id":"m1","message":{"role":"user","content":"Hello"}}`, "", none},
		{"a list", `[{"type":"user","message":{}}]`, "", none},
		{"more than a hundred unknown lines", strings.Repeat(foreign, 101) + start, "", none},
		{"a few unknown lines", strings.Repeat(foreign, 9) + start, "", ""},
		{"text before the first object", "Starting\n" + start, "", ""},
		{"other lines than those of the format", foreign, agent.Droid, notDroid},
		{"the log of another agent", start, agent.Claude, "log not recognized: not of format claude (it is of format droid)"},
		{"text only, of an agent that could not start", "droid: no account\n", agent.Droid, ""},
		{"a session without its start", `{"type":"message","id":"m1","message":{"role":"user","content":"Hello"}}`, agent.Droid, ""},
		{"only the line that agents have in common", `{"type":"system","subtype":"init","session_id":"s1"}`, agent.Claude, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events int
			var refused error
			for _, err := range agent.Read(strings.NewReader(c.log), c.format) {
				if refused = err; err == nil {
					events++
				}
			}
			if c.want == "" {
				require.NoError(t, refused)
				require.NotZero(t, events)
				return
			}
			require.ErrorIs(t, refused, agent.ErrUnrecognized)
			require.EqualError(t, refused, c.want)
			require.Zero(t, events)
		})
	}
}

func TestLinesWithAUUIDAreTheSameEventInAllFiles(t *testing.T) {
	first := read(t, agent.Claude, claudeText("user", "u1", "Hello", "")+claudeText("assistant", "u2", "Hi", ""))
	resumed := read(t, agent.Claude,
		claudeText("assistant", "u2", "Hi", `"gitBranch":"topic",`)+
			strings.ReplaceAll(claudeText("user", "u1", "Hello", `"version":"9",`), `"s1"`, `"s2"`)+
			claudeText("user", "u1", "Hello", "")+claudeText("user", "u3", "Hello", ""))
	require.Len(t, first, 2)
	require.Len(t, resumed, 4)
	require.Equal(t, first[1].ClientEventID, resumed[0].ClientEventID)
	require.Equal(t, first[0].ClientEventID, resumed[1].ClientEventID)
	require.NotEqual(t, first[0].ClientEventID, resumed[2].ClientEventID)
	require.Equal(t, event.Note{Kind: event.NoteSystem, Content: "not recorded: repeated line (1)"}, resumed[3].Body)
}

// userLine is a line with a message of the user in each format.
var userLine = map[agent.Format]string{
	agent.Claude: `{"type":"user","uuid":"u1","message":{"role":"user","content":%s}}`,
	agent.Codex:  `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}}`,
	agent.Droid:  `{"type":"message","role":"user","text":%s}`,
}

// saidAndNoted are the messages and the notes in a log whose user writes a text.
func saidAndNoted(t *testing.T, format agent.Format, text string) (said, noted []string) {
	encoded, err := json.Marshal(text)
	require.NoError(t, err)
	for _, e := range read(t, format, fmt.Sprintf(userLine[format], encoded)) {
		switch body := e.Body.(type) {
		case event.UserMessage:
			said = append(said, body.Content)
		case event.Note:
			noted = append(noted, body.Content)
		}
	}
	return said, noted
}

func TestOnlyTheTextOfTheUserIsTheirMessage(t *testing.T) {
	for format, texts := range map[agent.Format]map[string]string{
		agent.Claude: {
			"Hello <system-reminder>a</system-reminder> <ide_selection>b</ide_selection>": "Hello",
			"<ide_opened_file>a</ide_opened_file>Hello<bash-stdout>b</bash-stdout>":       "Hello",
			"<bash-input>ls</bash-input>":                      "",
			"[Request interrupted by user]":                    "",
			"[Request interrupted by user for tool use] Go on": "Go on",
			"Caveat: The messages below were generated by the user while running local commands. Do not, unless the user asks you to.": "",
			strings.Repeat("<system-reminder>a</system-reminder>\n", 40) + "Hello":                                                     "Hello",
		},
		agent.Codex: {
			"<skill a='1'>a</skill>\nHello":                                           "Hello",
			"<environment_context>\n<cwd>/srv</cwd>\n</environment_context>":          "",
			"# AGENTS.md instructions for /srv\n\n<INSTRUCTIONS>\na\n</INSTRUCTIONS>": "",
			"Hello <skill>a</skill> <skill>b</skill>":                                 "Hello",
			"<skill>a</skill>Hello<turn_aborted>b</turn_aborted>":                     "Hello",
		},
		agent.Droid: {
			"<system-notification>a</system-notification>Hello <system-reminder>b</system-reminder>": "Hello",
		},
	} {
		for text, want := range texts {
			said, noted := saidAndNoted(t, format, text)
			require.Equal(t, want, strings.Join(said, "|"), text)
			require.Len(t, noted, 1, "%s: the rest is a note", text)
		}
	}
}

func TestTheTextOfTheUserIsNotTakenForThatOfTheAgent(t *testing.T) {
	for _, text := range []string{
		"Hello", " Hello ", "<b>Hello</b>", "What is <system-reminder>?", "Is </skill> a tag",
		"<system-reminder>a", "<system-reminder>a</skill>", "a</system-reminder>", "</skill>", "<skill>",
		"<skill> elements are parsed wrong", "<skills>a</skill>", "<system-reminders>a</system-reminders>",
		`<image src="cat.png"> has no alt text`, `<image src="cat.png"></image>`, "<INSTRUCTIONS>Be kind</INSTRUCTIONS>",
		"# AGENTS.md instructions for tests are stale", "[Request interrupted by user", "Hello [1]",
	} {
		for format := range userLine {
			said, noted := saidAndNoted(t, format, text)
			require.Equal(t, []string{text}, said)
			require.Empty(t, noted, text)
		}
	}
	for text, of := range map[string][]agent.Format{
		"<skill>a</skill>":                     {agent.Codex},
		"<bash-input>ls</bash-input>":          {agent.Claude},
		"<system-reminder>a</system-reminder>": {agent.Claude, agent.Droid},
	} {
		for format := range userLine {
			said, _ := saidAndNoted(t, format, text)
			require.Equal(t, slices.Contains(of, format), len(said) == 0, "%s %s", format, text)
		}
	}
}

func TestTagsAroundImagesOfCodexAreNotRecorded(t *testing.T) {
	for content, want := range map[string][]string{
		`{"type":"input_text","text":"<image name=[1]>"},{"type":"input_image"},{"type":"input_text","text":"</image>"},{"type":"input_text","text":"A cat?"}`: {"A cat?"},
		`{"type":"input_image"},{"type":"input_text","text":"<image> or <img>?"}`:                                                                              {"<image> or <img>?"},
		`{"type":"input_text","text":"<image>"}`: {"<image>"},
	} {
		var said []string
		for _, e := range read(t, agent.Codex, `{"type":"response_item","payload":{"type":"message","role":"user","content":[`+content+`]}}`) {
			if message, ok := e.Body.(event.UserMessage); ok {
				said = append(said, message.Content)
			}
		}
		require.Equal(t, want, said, content)
	}
}

func TestLongTextsAreReadInLinearTime(t *testing.T) {
	for _, text := range []string{
		"x" + strings.Repeat("<skill></skill>", 50_000),
		strings.Repeat("<skill></skill>", 50_000) + "x",
		"<skill>" + strings.Repeat("<turn_aborted></turn_aborted>", 25_000),
		strings.Repeat("<skill>", 100_000) + "</skill>",
		"<skill" + strings.Repeat("</skill>", 100_000),
		strings.Repeat("<", 1_000_000),
	} {
		started := time.Now()
		saidAndNoted(t, agent.Codex, text)
		require.Less(t, time.Since(started), time.Minute, text[:30]) // quadratic: minutes
	}
}

func TestCodexMessagesInTwoFormsAreOne(t *testing.T) {
	line := func(kind, payload string) string {
		return fmt.Sprintf(`{"timestamp":"2026-01-02T15:04:05Z","type":"%s","payload":%s}`+"\n", kind, payload)
	}
	item := func(texts ...string) string {
		for i, text := range texts {
			texts[i] = fmt.Sprintf(`{"type":"input_text","text":"%s"}`, text)
		}
		return line("response_item", `{"type":"message","role":"user","content":[`+strings.Join(texts, ",")+`]}`)
	}
	notice := func(text string) string {
		return line("event_msg", `{"type":"user_message","message":"`+text+`"}`)
	}
	for name, c := range map[string]struct{ log, want string }{
		"the item first":       {item("Go") + notice("Go"), "Go"},
		"the notice first":     {notice("Go") + item("Go"), "Go"},
		"twice":                {item("Go") + notice("Go") + item("Go") + notice("Go"), "Go|Go"},
		"two at once":          {item("Go") + item("On") + notice("Go") + notice("On"), "Go|On"},
		"items only":           {item("Go") + item("Go"), "Go|Go"},
		"notices only":         {notice("Go") + notice("On"), "Go|On"},
		"with other spaces":    {item("Go  on") + notice(`Go on\n`), "Go  on"},
		"with tags of images":  {item("<image name=1>", "</image>", "Look") + notice("Look"), "Look"},
		"with added text":      {item("<skill>a</skill>", "Go") + notice("Go"), "Go"},
		"without the other":    {item("Go") + notice("Stop"), "Go|Stop"},
		"with an unknown role": {line("response_item", `{"type":"message","role":"tool","content":"Go"}`), ""},
	} {
		var said []string
		for _, e := range read(t, agent.Codex, c.log) {
			if m, ok := e.Body.(event.UserMessage); ok {
				said = append(said, m.Content)
			}
		}
		require.Equal(t, c.want, strings.Join(said, "|"), name)
	}
}

func TestALineWithinALineLosesNothing(t *testing.T) {
	whole := []string{
		claudeText("user", "u1", "Is the gate open?", ""),
		claudeText("assistant", "u2", "It is öpen {\\\"type\\\": 1} until nine, 🌊 except", ""),
		claudeText("user", "u3", "Thanks.", ""),
	}
	inserts := []string{
		`{"type":"rate_limit_event","rate_limit_info":{"type":"five_hour"},"uuid":"r1","session_id":"s1"}` + "\n",
		claudeText("assistant", "r2", "Between.", ""),
		`{"type":"user","message":{"content":"Within."},"timestamp":"2026-01-02T15:04:05Z"}` + "\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, len(whole)-1).Draw(t, "line")
		line := whole[n]
		cuts := rapid.SliceOfNDistinct(rapid.IntRange(1, len(line)-2), 1, len(inserts), rapid.ID).Draw(t, "cuts")
		slices.Sort(cuts)
		tangled, from := "", 0
		for i, cut := range cuts {
			tangled += line[from:cut] + inserts[i]
			from = cut
		}
		tangled += line[from:]
		want := eventsByID(t, strings.Join(whole, "")+strings.Join(inserts[:len(cuts)], ""))
		got := eventsByID(t, strings.Join(whole[:n], "")+tangled+strings.Join(whole[n+1:], ""))
		require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), tangled)
		require.Equal(t, want, got)
	})
}

func eventsByID(t require.TestingT, log string) map[string]event.Body {
	events := map[string]event.Body{}
	for e, err := range agent.Read(strings.NewReader(`{"type":"summary","leafUuid":"u0"}`+"\n"+log), agent.Claude) {
		require.NoError(t, err)
		events[e.ClientEventID] = e.Body
	}
	return events
}

func TestALineThatIsNotContinuedLeavesAWarning(t *testing.T) {
	broken := `{"type":"assistant","message":{"content":"It is `
	next := claudeText("user", "u1", "Hello", "")
	for name, log := range map[string]string{
		"at the end":         broken + next,
		"by an agent's line": broken + next + strings.Repeat("working\n", 9),
		"twice":              broken + claudeText("user", "u0", "Hello", "") + broken + next,
	} {
		events := read(t, agent.Claude, claudeText("user", "u9", "Hello", "")+log)
		require.Contains(t, summaries(events), "warning: line broken off by another one", name)
		require.GreaterOrEqual(t, strings.Count(strings.Join(summaries(events), "|"), "user"), 2, name)
	}
}
