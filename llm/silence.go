package llm

import (
	"context"
	"fmt"
	"time"
)

// silence is the cause for which a request ends that nothing came back from.
type silence struct {
	limit time.Duration
	begun bool // the answer had begun
}

func (s silence) Error() string {
	if s.begun {
		return fmt.Sprintf("the answer stalled: nothing came for %v (stallMs)", s.limit)
	}
	return fmt.Sprintf("the answer did not begin within %v (firstTokenMs)", s.limit)
}

// listener ends a request when nothing is heard for too long. What counts is
// what belongs to an answer, the model's reasoning included; comments by which
// a server keeps the connection alive do not.
type listener struct {
	cancel context.CancelCauseFunc
	stall  time.Duration
	timer  *time.Timer // nil without a bound
}

// listen begins to wait for the first token. The context that it returns ends
// with a [silence] as its cause. The listener is to be stopped.
func (t *Target) listen(ctx context.Context) (context.Context, *listener) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &listener{cancel: cancel, stall: t.Stall}
	l.wait(silence{limit: t.FirstToken})
	return ctx, l
}

// heard goes on waiting, for more.
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
