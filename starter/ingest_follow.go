package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/formats/agent"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// followed yields the events of a file, and of what is added to it, until ctx ends.
func (o ingestOptions) followed(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for ctx.Err() == nil {
			file, err := os.Open(o.file)
			if errors.Is(err, fs.ErrNotExist) {
				pause.For(ctx, o.poll) // it was moved away; the next one follows
				continue
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			goOn := true
			t := tail{ctx: ctx, file: file, poll: o.poll}
			for e, err := range agent.Read(&t, agent.Format(o.format)) {
				if t.isReplaced && errors.Is(err, agent.ErrUnrecognized) {
					break // replaced before it had a line
				}
				goOn = yield(e, err) && err == nil
				if !goOn {
					break
				}
			}
			file.Close()
			if !goOn {
				return
			}
		}
		yield(event.Event{}, ctx.Err())
	}
}

// tail reads a file that grows. It ends when the file is truncated, or its name belongs to another file.
type tail struct {
	ctx        context.Context
	file       *os.File
	poll       time.Duration
	offset     int64
	isReplaced bool
}

func (t *tail) Read(p []byte) (int, error) {
	for {
		n, err := t.file.Read(p)
		t.offset += int64(n)
		switch {
		case n > 0:
			return n, nil
		case err != nil && !errors.Is(err, io.EOF):
			return 0, err
		case t.isReplaced:
			return 0, io.EOF
		}
		if t.isReplaced, err = t.wasReplaced(); err != nil {
			return 0, err
		}
		// What was written before is read before the end.
		if !t.isReplaced && !pause.For(t.ctx, t.poll) {
			return 0, t.ctx.Err()
		}
	}
}

func (t *tail) wasReplaced() (bool, error) {
	open, err := t.file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(t.file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && (!os.SameFile(open, named) || open.Size() < t.offset), err
}
