package mcp

import (
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressTable finds the call of a progress notification.
type progressTable struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]func(string)
}

func (t *progressTable) begin(report func(string)) (token int64, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	token = t.last
	if t.calls == nil {
		t.calls = map[int64]func(string){}
	}
	t.calls[token] = report
	return token, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.calls, token)
	}
}

func (t *progressTable) running() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

func (t *progressTable) report(p *sdk.ProgressNotificationParams, scrub func(string) string) {
	token := idOf(encoded(p.ProgressToken))
	t.mu.Lock()
	report := t.calls[token]
	t.mu.Unlock()
	if report != nil {
		report(progressText(p, scrub))
	}
}

func progressText(p *sdk.ProgressNotificationParams, scrub func(string) string) string {
	amount := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		amount += fmt.Sprintf("/%g", p.Total)
	}
	if p.Message == "" {
		return amount
	}
	return clean(scrub(p.Message), maxProgressBytes) + " (" + amount + ")"
}

const maxProgressBytes = 512 // of the message of a progress notification
