package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/lines"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

type scriptOptions struct {
	*app
	name   string
	deltas bool
	// retryInterval is the delay before a query is sent again while no worker responds.
	retryInterval time.Duration
	// queryInterval is how long the log may be silent before the script queries the outcome of
	// its pending inputs.
	queryInterval time.Duration
}

func newScriptCommand(a *app) *cobra.Command {
	o := scriptOptions{app: a, retryInterval: time.Second, queryInterval: 2 * time.Second}
	command := &cobra.Command{
		Use:   "script -n NAME [--deltas]",
		Short: "Send events from standard input and print the log, both as JSONL",
		Long: `Send events from standard input, one JSON object or array per line, and print new
events as they are recorded, one JSON object per line. The context accepts or
rejects the events of an array together.

Each line is sent as soon as it is read, without waiting for answers. The
delivery policy decides what happens to a running answer, see "starter set
policy". After the end of input, the command exits when all lines are recorded
and no answer is running.

Events are deduplicated by clientEventId: a repeated line adds nothing to the
log, and the event recorded first is printed.

Invalid lines are reported on standard error and skipped; the exit code is then
1.`,
		Example: `  echo '{"_tag":"UserMessage","content":"Hello"}' | starter script -n demo --deltas`,
		Args:    noArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return runScript(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.deltas, "deltas", false, "also print live deltas, as TextDeltaEvent and ReasoningDeltaEvent")
	return command
}

func runScript(ctx context.Context, o scriptOptions) error {
	to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	if o.deltas {
		o.noteNotLive()
	}
	recorded, from, err := clientEventIDs(ctx, to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := script{scriptOptions: o, to: to, recorded: recorded, printed: event.Counter(from)}
	log := to.Follow(ctx, client.FollowOptions{From: from, Deltas: o.deltas})
	return s.run(ctx, readLines(ctx, o.in), client.Entries(ctx, log, 0))
}

// One goroutine sends and prints, so that it knows everything that was sent when it sees an
// event.
type script struct {
	scriptOptions
	to conversation

	lines, bad int
	inputEnded bool
	// pending are the inputs that were sent and are not recorded yet.
	pending []sentInput
	// stopNotice stops the notice about a missing worker; nil without pending inputs.
	stopNotice func()
	printed    int
	// recorded are the counters of recorded events by client event id. The context deduplicates
	// only by the latest thousand.
	recorded map[string]int
	// goal is the counter of the newest event when isDone last queried the context; 0 before that.
	goal int
}

// sentInput is a sent line and its events that are not in the log yet: their event ids if a worker
// has responded, otherwise their client event ids.
type sentInput struct {
	line      int
	eventIDs  []string
	clientIDs []string
}

func (in sentInput) isDone() bool { return len(in.eventIDs) == 0 && len(in.clientIDs) == 0 }

func (s *script) run(ctx context.Context, lines <-chan readLine, log <-chan client.Entry) error {
	defer s.await(false)
	silence := time.NewTimer(s.queryInterval)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, ok := <-lines:
			if !ok {
				lines, s.inputEnded = nil, true
				break
			}
			if line.err != nil {
				return fmt.Errorf("standard input: %w", line.err)
			}
			if err := s.send(ctx, line.text); err != nil {
				return err
			}
			continue
		case l, ok := <-log:
			if !ok {
				return errors.New("the log ended before the script was complete")
			}
			if l.Err != nil {
				return l.Err
			}
			silence.Reset(s.queryInterval)
			if err := s.take(l.Event); err != nil {
				return err
			}
			if !s.mayBeIdle(l.Event) {
				continue
			}
		case <-silence.C:
			silence.Reset(s.queryInterval)
			if err := s.queryDelivery(ctx); err != nil {
				return err
			}
		}
		if done, err := s.isDone(ctx); done || err != nil {
			return err
		}
	}
}

// send returns only errors that end the script.
func (s *script) send(ctx context.Context, text []byte) error {
	s.lines++
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	events, err := event.DecodeInput(text)
	if err == nil {
		in := sentInput{line: s.lines}
		var fresh []event.Event
		for _, e := range events {
			if counter, ok := s.recorded[e.ClientEventID]; ok {
				in.eventIDs = append(in.eventIDs, event.FormatID(s.to.Name(), counter))
				continue
			}
			e.ClientEventID = cmp.Or(e.ClientEventID, rand.Text())
			in.clientIDs = append(in.clientIDs, e.ClientEventID)
			fresh = append(fresh, e)
		}
		var sent client.Receipt
		if len(fresh) > 0 {
			sent, err = s.to.Send(ctx, fresh...)
		}
		if err == nil || errors.Is(err, client.ErrRefused) { // the log reports rejections
			switch {
			case sent.RefusalID != "":
				in.eventIDs, in.clientIDs = append(in.eventIDs, sent.RefusalID), nil
			case sent.EventIDs != nil:
				for i, id := range sent.EventIDs {
					s.recorded[in.clientIDs[i]] = event.Counter(id)
				}
				in.eventIDs, in.clientIDs = append(in.eventIDs, sent.EventIDs...), nil
			}
			if err := s.printRepeated(ctx, &in); err != nil || in.isDone() {
				return err
			}
			s.pending = append(s.pending, in)
			if s.stopNotice == nil {
				s.await(true)
			}
			return nil
		}
		if !errors.As(err, new(*event.FieldError)) {
			return fmt.Errorf("line %d: %w", s.lines, err)
		}
	}
	s.bad++
	fmt.Fprintf(s.err, "starter: line %d: not sent: %v\n", s.lines, err)
	return nil
}

// printRepeated prints those events of an input that were recorded before, by this script or
// another, and that the script therefore will not see in the log.
func (s *script) printRepeated(ctx context.Context, in *sentInput) error {
	var rest []string
	for _, id := range in.eventIDs {
		counter := event.Counter(id)
		if counter > s.printed {
			rest = append(rest, id)
			continue
		}
		from := ""
		if counter > 1 {
			from = event.FormatID(s.to.Name(), counter-1)
		}
		for e, err := range s.to.Events(ctx, from) {
			if err != nil {
				return fmt.Errorf("line %d: read event %s, which was recorded before: %w", in.line, id, err)
			}
			if err := s.printJSON(e); err != nil {
				return err
			}
			break
		}
	}
	in.eventIDs = rest
	return nil
}

func (s *script) take(e event.Event) error {
	if counter := event.Counter(e.ID); counter > 0 {
		if counter <= s.printed { // the run was reset
			maps.DeleteFunc(s.recorded, func(_ string, recorded int) bool { return recorded >= counter })
		}
		if s.printed = counter; e.ClientEventID != "" && e.Tag() != event.TagInputRejected {
			s.recorded[e.ClientEventID] = counter
		}
	}
	before := len(s.pending)
	struck := false
	for i := range s.pending {
		struck = s.pending[i].strike(e) || struck
	}
	s.pending = slices.DeleteFunc(s.pending, sentInput.isDone)
	if struck || len(s.pending) < before {
		s.await(len(s.pending) > 0)
	}
	return s.printJSON(e)
}

func (s *script) await(more bool) {
	if s.stopNotice != nil {
		s.stopNotice()
		s.stopNotice = nil
	}
	if more {
		s.stopNotice = s.noticeNoWorker(s.to)
	}
}

// strike removes an event from those that the input waits for, and reports whether it was one
// of them. A rejection removes all client event ids.
func (in *sentInput) strike(e event.Event) bool {
	if i := slices.Index(in.eventIDs, e.ID); i >= 0 && e.ID != "" {
		in.eventIDs = slices.DeleteFunc(in.eventIDs, func(id string) bool { return id == e.ID })
		return true
	}
	if e.ClientEventID == "" || !slices.Contains(in.clientIDs, e.ClientEventID) {
		return false
	}
	if e.Tag() == event.TagInputRejected {
		in.clientIDs = nil
		return true
	}
	in.clientIDs = slices.DeleteFunc(in.clientIDs, func(id string) bool { return id == e.ClientEventID })
	return true
}

func (s *script) mayBeIdle(e event.Event) bool {
	return endsTurn(e.Body) || e.ID != "" && s.goal == 0 || e.ID != "" && s.printed == s.goal
}

// queryDelivery queries what the log does not show: that a line sent by signal is a repeat,
// or that the run that received it was terminated or reset.
func (s *script) queryDelivery(ctx context.Context) error {
	if len(s.pending) == 0 {
		return nil
	}
	var ids []string
	for _, in := range s.pending {
		ids = append(ids, in.clientIDs...)
	}
	d, err := s.to.Delivery(ctx, ids...)
	switch {
	case errors.Is(err, client.ErrNoWorker), errors.Is(err, client.ErrUnreachable), errors.Is(err, blobs.ErrUnavailable):
		return nil
	case err != nil:
		return err
	}
	isCaughtUp := s.printed >= event.Counter(d.LastEventID)
	for i := range s.pending {
		in := &s.pending[i]
		in.clientIDs = slices.DeleteFunc(in.clientIDs, func(id string) bool {
			eventID, ok := d.EventIDs[id]
			if ok {
				in.eventIDs = append(in.eventIDs, eventID)
			}
			return ok
		})
		if err := s.printRepeated(ctx, in); err != nil {
			return err
		}
		if !in.isDone() && isCaughtUp && !d.Pending {
			return fmt.Errorf("line %d: %w", in.line, client.ErrLost)
		}
	}
	s.pending = slices.DeleteFunc(s.pending, sentInput.isDone)
	s.await(len(s.pending) > 0)
	return nil
}

func (s *script) isDone(ctx context.Context) (bool, error) {
	if !s.inputEnded || len(s.pending) > 0 {
		return false, nil
	}
	d, err := s.delivery(ctx)
	switch {
	case errors.Is(err, client.ErrNoContext):
		// No line was sent.
	case err != nil:
		return false, err
	default:
		s.goal = event.Counter(d.LastEventID)
		if d.Status == wire.StatusAnswering || s.printed < s.goal {
			return false, nil
		}
	}
	if s.bad > 0 {
		return true, fmt.Errorf("script: %d of %d lines not sent", s.bad, s.lines)
	}
	return true, nil
}

func (s *script) delivery(ctx context.Context) (client.Delivery, error) {
	for noted := false; ; noted = true {
		d, err := s.to.Delivery(ctx)
		reason := "no worker responds; waiting for one"
		switch {
		case errors.Is(err, blobs.ErrUnavailable):
			reason = "the blob store is unavailable; waiting for it"
		case !errors.Is(err, client.ErrNoWorker):
			return d, err
		}
		if !noted {
			s.note("%s", reason)
		}
		if !pause.For(ctx, s.retryInterval) {
			return d, ctx.Err()
		}
	}
}

type readLine struct {
	text []byte
	err  error
}

// readLines reads lines of up to [wire.MaxStoredBytes]. It closes the channel after an error or the
// end of the input.
func readLines(ctx context.Context, r io.Reader) <-chan readLine {
	read := make(chan readLine)
	go func() {
		defer close(read)
		send := func(l readLine) bool {
			select {
			case read <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		reader := lines.New(r, wire.MaxStoredBytes)
		for reader.Next() {
			if !send(readLine{text: reader.Text}) {
				return
			}
		}
		if err := reader.Err(); err != nil {
			send(readLine{err: err})
		}
	}()
	return read
}
