package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

type scriptOptions struct {
	*app
	name   string
	deltas bool
	// askAgain is the wait before a worker that does not answer is asked again.
	askAgain time.Duration
}

func newScriptCommand(a *app) *cobra.Command {
	o := scriptOptions{app: a, askAgain: time.Second}
	command := &cobra.Command{
		Use:   "script -n NAME [--deltas]",
		Short: "Events in on standard input, events out on standard output, as JSONL",
		Long: `Send events from standard input, one JSON object or array per line, and print
events as they are recorded, one JSON object per line, from now on. The events
of an array are taken or refused as a whole.

Lines are sent as they come, without waiting for answers; what that does to a
running answer is up to the policy of the context, see "starter set policy". It
ends after the end of input, when everything that was sent is recorded and no
answer is running.

A line that cannot be sent is named on standard error, the others are sent, and
the exit code is 1.

` + exitReference,
		Example: `  echo '{"_tag":"UserMessage","content":"Hello"}' | starter script -n demo --deltas`,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return runScript(command.Context(), o) },
	}
	nameFlag(command, &o.name, "", nameUsage)
	command.Flags().BoolVar(&o.deltas, "deltas", false, "print live deltas too, as TextDeltaEvent")
	return command
}

func runScript(ctx context.Context, o scriptOptions) error {
	c, to, err := o.open(ctx, o.name)
	if err != nil {
		return err
	}
	defer c.Shutdown()
	if o.deltas {
		o.noteNotLive(c)
	}
	from, err := lastID(ctx, to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := script{scriptOptions: o, to: to, printed: event.Counter(from)}
	log := to.Follow(ctx, session.FollowOptions{From: from, Deltas: o.deltas})
	return s.run(ctx, readLines(ctx, o.in), session.Entries(ctx, log, 0))
}

// lastID is the id of the newest event; "" when there is no log yet.
func lastID(ctx context.Context, of conversation) (string, error) {
	last := ""
	for e, err := range of.Events(ctx, "") {
		if errors.Is(err, session.ErrNoContext) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		last = e.ID
	}
	return last, nil
}

// script is a script at work. One goroutine sends and prints, so that it always
// knows what was sent when it sees what was recorded.
type script struct {
	scriptOptions
	to conversation

	lines, bad int
	// inputEnded says that there is nothing more to send.
	inputEnded bool
	// pending are the inputs that were sent and are not in the log.
	pending []sentInput
	// noted ends the wait for something of what is pending to be recorded; nil
	// when nothing is pending.
	noted func()
	// printed counts the newest event that was printed.
	printed int
	// goal counts the event at which the context was found idle; 0 before.
	goal int
}

// sentInput holds the client ids of the events of one input that are not in the
// log, in order.
type sentInput []string

func (s *script) run(ctx context.Context, lines <-chan readLine, log <-chan session.Entry) error {
	defer s.await(false)
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
				return errors.New("the log ended before the script did")
			}
			if l.Err != nil {
				return l.Err
			}
			if err := s.take(l.Event); err != nil {
				return err
			}
			if !s.mayBeIdle(l.Event) {
				continue
			}
		}
		if done, err := s.isDone(ctx); done || err != nil {
			return err
		}
	}
}

// send sends a line. Only what ends the script is returned as an error.
func (s *script) send(ctx context.Context, text []byte) error {
	s.lines++
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	events, err := event.DecodeInput(text)
	if err == nil {
		ids := make(sentInput, len(events))
		for i := range events {
			if events[i].ClientEventID == "" {
				events[i].ClientEventID = rand.Text()
			}
			ids[i] = events[i].ClientEventID
		}
		_, err = s.to.Send(ctx, events...)
		if err == nil || errors.Is(err, session.ErrRefused) { // the log tells of that
			s.pending = append(s.pending, ids)
			if s.noted == nil {
				s.await(true)
			}
			return nil
		}
		if !errors.As(err, new(*event.FieldError)) {
			return fmt.Errorf("line %d: %w", s.lines, err)
		}
	}
	s.bad++
	fmt.Fprintf(s.err, "starter: line %d was not sent: %v\n", s.lines, err)
	return nil
}

// take prints what was recorded and strikes it off what is pending.
func (s *script) take(e event.Event) error {
	if counter := event.Counter(e.ID); counter > 0 {
		s.printed = counter
	}
	for i, input := range s.pending {
		if input.strike(e) {
			s.pending[i] = input[1:]
			if rejected := e.Tag() == event.TagInputRejected; rejected || len(input) == 1 {
				s.pending = append(s.pending[:i], s.pending[i+1:]...)
			}
			s.await(len(s.pending) > 0)
			break
		}
	}
	return s.printJSON(e)
}

// await begins anew, or ends, the wait for something to be recorded, of which a
// person is told when it takes long.
func (s *script) await(more bool) {
	if s.noted != nil {
		s.noted()
		s.noted = nil
	}
	if more {
		s.noted = s.noteSilence()
	}
}

// strike reports whether an event is the next one of the input as recorded, or
// the rejection of the whole of it, which quotes the beginning of the input.
func (in sentInput) strike(e event.Event) bool {
	if rejected, ok := e.Body.(event.InputRejected); ok {
		quoted, err := json.Marshal(in[0])
		return err == nil && strings.Contains(rejected.Input, `"clientEventId":`+string(quoted))
	}
	return e.ClientEventID == in[0]
}

// mayBeIdle reports whether the context may have become idle with an event.
func (s *script) mayBeIdle(e event.Event) bool {
	return endsTurn(e.Body) || e.ID != "" && s.goal == 0 || e.ID != "" && s.printed == s.goal
}

// isDone reports whether everything was sent, recorded and answered, and
// printed.
func (s *script) isDone(ctx context.Context) (bool, error) {
	if !s.inputEnded || len(s.pending) > 0 {
		return false, nil
	}
	state, err := s.state(ctx)
	switch {
	case errors.Is(err, session.ErrNoContext):
		// Nothing was ever sent.
	case err != nil:
		return false, err
	default:
		s.goal = event.Counter(state.LastEventID)
		if state.Status == wire.StatusAnswering || s.printed < s.goal {
			return false, nil
		}
	}
	if s.bad > 0 {
		return true, fmt.Errorf("%d of %d lines could not be sent", s.bad, s.lines)
	}
	return true, nil
}

// state asks until a worker answers.
func (s *script) state(ctx context.Context) (wire.State, error) {
	for noted := false; ; noted = true {
		state, err := s.to.State(ctx)
		if !errors.Is(err, session.ErrNoWorker) {
			return state, err
		}
		if !noted {
			s.note("no worker answers; waiting for one")
		}
		select {
		case <-ctx.Done():
			return wire.State{}, ctx.Err()
		case <-time.After(s.askAgain):
		}
	}
}

type readLine struct {
	text []byte
	err  error
}

// readLines reads lines of any length until the end of input, where the channel
// is closed, or an error.
func readLines(ctx context.Context, r io.Reader) <-chan readLine {
	lines := make(chan readLine)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(r)
		for {
			text, err := reader.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				err = nil
				if len(text) == 0 {
					return
				}
			}
			select {
			case lines <- readLine{text, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}
