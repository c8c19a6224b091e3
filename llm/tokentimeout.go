package llm

import (
	"context"
	"fmt"
	"time"
)

// tokenTimeout is why a request was cancelled: no token arrived for too long.
type tokenTimeout struct {
	limit time.Duration
	begun bool // a token was received
}

func (s tokenTimeout) Error() string {
	if s.begun {
		return fmt.Sprintf("the answer stalled: no token for %v (stallMs)", s.limit)
	}
	return fmt.Sprintf("the answer did not begin within %v (firstTokenMs)", s.limit)
}

// tokenTimer cancels a request if no token arrives in time. Any chunk of the answer counts, also one with
// reasoning or with a role only; keep-alive comments do not.
type tokenTimer struct {
	cancel context.CancelCauseFunc
	stall  time.Duration
	timer  *time.Timer // nil without a limit
}

// On a timeout, the returned context ends with a [tokenTimeout]. The caller stops the timer.
func (t *Target) startTokenTimer(ctx context.Context) (context.Context, *tokenTimer) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &tokenTimer{cancel: cancel, stall: t.Stall}
	l.wait(tokenTimeout{limit: t.FirstToken})
	return ctx, l
}

func (l *tokenTimer) restart() { l.wait(tokenTimeout{limit: l.stall, begun: true}) }

func (l *tokenTimer) wait(s tokenTimeout) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if s.limit > 0 {
		l.timer = time.AfterFunc(s.limit, func() { l.cancel(s) })
	}
}

func (l *tokenTimer) stop() {
	l.wait(tokenTimeout{})
	l.cancel(nil)
}
