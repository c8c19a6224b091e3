package chat_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// The size of the terminal changes while an answer of numbers arrives, also long before the chat
// is told, as tmux does.
func TestResizingRepeatsAndLosesNothing(t *testing.T) {
	for _, reflows := range []bool{true, false} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("reflows %v, seed %d", reflows, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				s := open(t)
				s.terminal.reflows = reflows
				s.resize(80, 24)
				s.record(event.UserMessage{Content: "Count"}, started(1))
				want := ""
				for i := range 200 {
					text := fmt.Sprint(i, " ")
					if random.IntN(20) == 0 {
						text = fmt.Sprint(i, "\n")
					}
					want += text
					s.record(delta(i, text))
					switch width, height := 40+random.IntN(80), 20+random.IntN(20); random.IntN(10) {
					case 0:
						s.resize(width, height)
					case 1:
						s.terminal.resize(width, height)
					case 2:
						s.update(tea.WindowSizeMsg{Width: s.terminal.width, Height: s.terminal.height})
					}
				}
				s.resize(80, 24)
				s.record(event.AssistantMessage{RequestID: request, Content: want, ThroughEventID: "demo:0001"},
					event.LLMRequestCompleted{RequestID: request})
				s.until("complete", func() bool { return !strings.Contains(s.view(), "answering") && strings.Contains(s.printed(), "199") })
				_, printed, _ := strings.Cut(s.printed(), "› Count\n")
				require.Equal(t, strings.Fields(want), strings.Fields(printed))
			})
		}
	}
}
