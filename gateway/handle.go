package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Handle is a context as the sender of an [Exchange] may use it. What it writes completes even if the client disconnects.
// It is valid until the exchange ends.
type Handle struct {
	exchange *Exchange
	context  named
}

// Open returns a handle of a context of the tenant, which need not exist. The error is client.ErrName.
func (x *Exchange) Open(name string) (*Handle, error) {
	c, err := tenantOf(x.Request).open(name)
	if err != nil {
		return nil, err
	}
	if out, ok := x.w.(*response); ok {
		out.context = name
	}
	return &Handle{x, c}, nil
}

// Name returns the name of the context within the tenant.
func (h *Handle) Name() string { return h.context.Name() }

// Send sends events as one input, see [client.Context.Send], if the sender has the roles for them. With an
// Idempotency-Key, a repeated request sends nothing again. The receipt has no EventIDs if no worker has recorded them yet.
func (h *Handle) Send(events ...event.Event) (client.Receipt, error) {
	key, err := h.exchange.IdempotencyKey()
	if err != nil {
		return client.Receipt{}, err
	}
	sent, err := h.exchange.gateway.submit(h.exchange.Request, h.context, events, key)
	if err == nil {
		h.exchange.body.release()
	}
	return sent, err
}

// Branch forks the context, see [client.Context.Branch], which requires the role write.
func (h *Handle) Branch(o client.BranchOptions) (client.Branched, error) {
	if g := h.exchange.gateway; g.options.Auth != nil && !h.exchange.Identity().Has(auth.RoleWrite) {
		return client.Branched{}, missingRole(auth.RoleWrite)
	}
	return h.exchange.gateway.branch(h.exchange.Request, h.context, o)
}

// Interrupt stops the running answer, if any.
func (h *Handle) Interrupt() error { return h.act(Context.Interrupt) }

// Close stops the running answer and ends the session.
func (h *Handle) Close(reason string) error {
	x := h.exchange
	x.cleanup = append(x.cleanup, func() { tenantOf(x.Request).rooms.endEmpty(h.Name()) }) // after the views of the exchange
	return h.act(func(c Context, ctx context.Context) error { return c.Close(ctx, reason) })
}

// Delete starts the deletion of the context. The caller answers for the right to do so.
func (h *Handle) Delete() error {
	return h.act(func(c Context, ctx context.Context) error { return c.StartDeletion(ctx, client.DeleteOptions{}) })
}

func (h *Handle) act(action func(Context, context.Context) error) error {
	return h.exchange.gateway.actOn(h.exchange.Request, h.context, action)
}

// State queries a worker for the state of the context.
func (h *Handle) State() (wire.State, error) {
	ctx, cancel := context.WithTimeout(h.exchange.Request.Context(), answerTimeout)
	defer cancel()
	return h.context.State(ctx)
}

// Events yields the recorded events after the one with the id from; "": from the first. Until the exchange ends, they
// count as bytes of responses, because protocols keep them; the error is a [*Problem] if there is no room for more.
func (h *Handle) Events(from string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range h.Scan(from) {
			if err == nil {
				data, _ := e.MarshalJSON() // an event decoded from JSON always encodes
				err = h.exchange.read.grow(int64(len(data)))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Scan is [Handle.Events] for a caller that keeps little of a log: the events do not count.
func (h *Handle) Scan(from string) iter.Seq2[event.Event, error] {
	return h.context.Events(h.exchange.Request.Context(), from)
}

// EventsThrough yields the recorded events after the one with the id from ("": from the first) through the one with the id
// to, which a [Snapshot] or another event of the context names; "": none. It does not read the log if the room of the
// context, which a Snapshot opens, buffers them.
func (h *Handle) EventsThrough(from, to string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		last := event.Counter(to)
		if last <= event.Counter(from) {
			return
		}
		if r := tenantOf(h.exchange.Request).rooms.find(h.Name()); r != nil {
			if events, ok := r.between(event.Counter(from), last); ok {
				for _, e := range events {
					if !yield(e.event, nil) {
						return
					}
				}
				return
			}
		}
		for e, err := range h.Events(from) {
			n := event.Counter(e.ID)
			if err == nil && n > last || !yield(e, err) || n == last {
				return
			}
		}
	}
}

// Attachment returns the file of an event with its bytes.
func (h *Handle) Attachment(id string) (event.FileAttachment, error) {
	ctx, cancel := context.WithTimeout(h.exchange.Request.Context(), answerTimeout)
	defer cancel()
	return h.context.Attachment(ctx, id)
}

var errLost = fmt.Errorf("the newest answer: %w", client.ErrUnanswered)

// Follow yields what was recorded after the event with the id from ("": from the first), and then what happens. All
// viewers of a context share one follower. The deltas of the running attempt begin with its whole text so far, and a
// delta with Reset replaces it. It waits for a context that does not exist. It ends when the client disconnects, with an
// error when the gateway shuts down, the context is reset, or its run is terminated while it answers.
func (h *Handle) Follow(from string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := h.follow(from, yield); err != nil && !errors.Is(err, errStopped) {
			yield(Item{}, err)
		}
	}
}

var errStopped = errors.New("the caller stopped")

func (h *Handle) follow(from string, yield func(Item, error) bool) error {
	v, err := h.view(from)
	if err != nil {
		return err
	}
	x := h.exchange
	ctx, cancel := context.WithCancel(x.Request.Context())
	defer cancel()
	defer context.AfterFunc(x.gateway.closing, cancel)()
	keepAlive := time.NewTicker(x.gateway.options.KeepAlive)
	defer keepAlive.Stop()
	for {
		changed, err := v.each(ctx, h.context, func(item Item) error {
			if !yield(item, nil) {
				return errStopped
			}
			return nil
		})
		for err == nil {
			select {
			case <-changed:
			case <-ctx.Done():
				err = ctx.Err()
			case <-keepAlive.C:
				if out, ok := x.w.(*response); ok {
					out.extend()
				}
				err = x.gateway.recheck(x.w, x.Request)
				continue
			}
			break
		}
		if x.gateway.closing.Err() != nil && x.Request.Context().Err() == nil && !errors.Is(err, errStopped) {
			return errClosing
		}
		if err != nil {
			return err
		}
	}
}

// view enters the room of the context until the exchange ends, and counts the exchange as a stream. A view before a write
// misses nothing of it.
func (h *Handle) view(from string) (*eventViewer, error) {
	if from != "" && (event.Counter(from) == 0 || from != event.FormatID(h.Name(), event.Counter(from))) {
		return nil, badRequest("%q: not an event of the context (want an id like %s)", from, event.FormatID(h.Name(), 1))
	}
	x := h.exchange
	if !x.counted {
		release, err := x.gateway.countStreams(x.Request, x.w, 1)
		if err != nil {
			return nil, err
		}
		x.counted = true
		x.cleanup = append(x.cleanup, release)
	}
	v, leave, err := x.gateway.newEventViewer(x.Request, h.context, from)
	if err == nil {
		x.cleanup = append(x.cleanup, leave)
	}
	return v, err
}
