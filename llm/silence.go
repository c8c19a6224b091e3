package llm

import (
	"context"
	"fmt"
	"time"
)

// silence is the cause of a request that ends without a token for too long.
type silence struct {
	limit time.Duration
	begun bool // a token was received
}

func (s silence) Error() string {
	if s.begun {
		return fmt.Sprintf("the answer stalled: no token for %v (stallMs)", s.limit)
	}
	return fmt.Sprintf("the answer did not begin within %v (firstTokenMs)", s.limit)
}

// listener ends a request when no token arrives for too long. Reasoning tokens count;
// keep-alive comments do not.
type listener struct {
	cancel context.CancelCauseFunc
	stall  time.Duration
	timer  *time.Timer // nil without a limit
}

// listen starts the wait for the first token. On a timeout, the context that it returns ends
// with a [silence] as its cause. The caller stops the listener.
func (t *Target) listen(ctx context.Context) (context.Context, *listener) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &listener{cancel: cancel, stall: t.Stall}
	l.wait(silence{limit: t.FirstToken})
	return ctx, l
}

// heard restarts the timer.
func (l *listener) heard() { l.wait(silence{limit: l.stall, begun: true}) }

func (l *listener) wait(s silence) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if s.limit > 0 {
		l.timer = time.AfterFunc(s.limit, func() { l.cancel(s) })
	}
}

func (l *listener) stop() {
	l.wait(silence{})
	l.cancel(nil)
}
