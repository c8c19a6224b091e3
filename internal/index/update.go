package index

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// update is a read of the log of a context.
type update struct {
	index    *Index
	record   *record
	messages []message // that are not in the store yet
	bytes    int
	deleted  []string // ids of documents to delete
}

// errOtherLog means that the log is not the one that was read before: it was reset, or the context was deleted and there is
// another one with its name.
var errOtherLog = errors.New("the log is another one")

// tail reads the events after the newest one that is known, which must be the same in the log.
func (u *update) tail(ctx context.Context) error {
	if u.record.Through == 0 || u.index.isMisplaced(u.record) {
		return errOtherLog
	}
	from := ""
	if u.record.Through > 1 {
		from = event.FormatID(u.record.ContextName, u.record.Through-1)
	}
	isKnown := false
	for e, err := range u.index.source.Events(ctx, u.record.ContextName, from) {
		switch {
		case !isKnown && (errors.Is(err, client.ErrNoEvent) || errors.Is(err, client.ErrNoContext)):
			return errOtherLog
		case err != nil:
			return err
		case isKnown:
			if err := u.add(e); err != nil {
				return err
			}
		case event.Counter(e.ID) != u.record.Through || !e.Timestamp.Equal(u.record.ThroughAt):
			return errOtherLog
		default:
			isKnown = true
		}
	}
	if !isKnown {
		return errOtherLog
	}
	return nil
}

// all reads the log from its beginning.
func (u *update) all(ctx context.Context) error {
	for e, err := range u.index.source.Events(ctx, u.record.ContextName, "") {
		if err == nil {
			err = u.add(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *update) add(e event.Event) error {
	if started, ok := e.Body.(event.SessionStarted); ok && event.Counter(started.ForkedFrom) > 0 {
		tenant, _ := event.CutTenant(u.record.ContextName)
		origin := started.ForkedFrom[:strings.LastIndexByte(started.ForkedFrom, ':')]
		if err := u.fork(fork{Origin: event.JoinTenant(tenant, origin), At: e.Timestamp}); err != nil {
			return err
		}
	}
	m, ok := u.record.fold(e)
	if !ok {
		return nil
	}
	u.messages = append(u.messages, m)
	if u.bytes += len(m.text); u.bytes < batchBytes && len(u.messages) < batchMessages {
		return nil
	}
	next := *u.record
	if err := u.flush(); err != nil {
		return err
	}
	u.record = &next
	return nil
}

// fork omits the messages so far if they are those of the origin.
func (u *update) fork(f fork) error {
	if f.Omitted = u.index.covers(f); f.Omitted {
		ids, err := u.index.store.messageIDs(u.record.ContextName)
		if err != nil {
			return err
		}
		u.deleted, u.messages, u.bytes = ids, nil, 0
	}
	u.record.Forks = append(slices.Clone(u.record.Forks), f)
	return nil
}

// flush stores and publishes the record, which must not be changed afterwards.
func (u *update) flush() error {
	u.record.show()
	known := u.index.list.get(u.record.ContextName)
	if known == nil || len(u.messages)+len(u.deleted) > 0 || !sameSummary(known.Summary, u.record.Summary) || known.Through != u.record.Through {
		if err := u.index.store.apply(change{record: u.record, messages: u.messages, deleted: u.deleted}); err != nil {
			return err
		}
	}
	u.messages, u.bytes, u.deleted = nil, 0, nil
	u.record.readAt = time.Now()
	u.index.list.set(u.record)
	return nil
}
