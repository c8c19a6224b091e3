package chat

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
)

// Context is the part of [client.Context] that the screen uses.
type Context interface {
	Name() string
	Send(ctx context.Context, events ...event.Event) (client.Receipt, error)
	Events(ctx context.Context, from string) iter.Seq2[event.Event, error]
	Follow(ctx context.Context, options client.FollowOptions) iter.Seq2[event.Event, error]
	State(ctx context.Context) (wire.State, error)
	Interrupt(ctx context.Context) error
	UnattendedSince(ctx context.Context) (time.Time, error)
}

type Config struct {
	Context Context
	// Past is the log so far. The screen shows a summary and follows the log from its
	// end.
	Past []event.Event
	// Style formats text; the zero value uses no colors.
	Style show.Style
	// Width and Height are the initial size of the terminal in cells; 0 means 80 and 24.
	Width, Height int
	// TaskQueue is mentioned when no worker responds.
	TaskQueue string
	// RecordTimeout is how long an input may take to be recorded before the screen shows why;
	// 0 means 5 seconds.
	RecordTimeout time.Duration
	// Program is the command line of the program, for advice. EndsAll: the worker ends with the screen.
	Program string
	EndsAll bool
	// User is recorded as the person who approves or denies a tool call; "": no one is recorded.
	User   string
	Attach func(place string) (event.Event, error)
	// Switch opens the context of a command /switch or /new, and reads its log.
	Switch func(ctx context.Context, command Command) (Context, []event.Event, error)
	// Contexts returns a table of contexts.
	Contexts func(ctx context.Context) (string, error)
}

// ErrTerminalGone ends a screen whose terminal can no longer be read. The running answer continues.
var ErrTerminalGone = errors.New("the terminal is gone")

// Run shows the screen until the user exits, the terminal is gone (ErrTerminalGone) or ctx is done. If ctx is done, it
// returns the error of ctx.
func Run(ctx context.Context, in io.Reader, out io.Writer, config Config) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if terminal, ok := in.(*os.File); ok {
		in = watchedTerminal{terminal, func() { cancel(ErrTerminalGone) }}
	}
	silent := io.Discard
	if terminal, ok := out.(*os.File); ok {
		silent = silentTerminal{terminal}
	}
	if _, err := io.WriteString(out, showScreen); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(out, hideScreen) }()
	// With TMUX, bubbletea runs "tmux info" to detect the colors, which the screen does not use.
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "TMUX=") })
	program := tea.NewProgram(New(ctx, out, config), tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(silent),
		tea.WithoutSignalHandler(), tea.WithEnvironment(environment))
	_, err := program.Run()
	if cause := context.Cause(ctx); errors.Is(cause, ErrTerminalGone) {
		return cause
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// watchedTerminal calls gone when it cannot be read, which bubbletea ignores at the end of the input. A terminal has no
// end: Ctrl-D is a key.
type watchedTerminal struct {
	*os.File
	gone func()
}

func (t watchedTerminal) Read(p []byte) (int, error) {
	n, err := t.File.Read(p)
	if err != nil {
		t.gone()
	}
	return n, err
}

// silentTerminal lets bubbletea set up the terminal and watch its size, but not write to it.
type silentTerminal struct{ *os.File }

func (silentTerminal) Write(p []byte) (int, error) { return len(p), nil }
