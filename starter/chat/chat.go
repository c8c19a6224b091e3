package chat

import (
	"context"
	"io"
	"iter"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/session"
	"github.com/seed-9ed7edd4/chronicle/starter/chat/quiet"
	"github.com/seed-9ed7edd4/chronicle/starter/show"
	"github.com/seed-9ed7edd4/chronicle/wire"
)

// Now bubbletea is initialized.
func init() { quiet.Restore() }

// Context is what the screen needs of a [session.Context].
type Context interface {
	Name() string
	Send(ctx context.Context, events ...event.Event) (session.Receipt, error)
	Events(ctx context.Context, from string) iter.Seq2[event.Event, error]
	Follow(ctx context.Context, options session.FollowOptions) iter.Seq2[event.Event, error]
	State(ctx context.Context) (wire.State, error)
	Interrupt(ctx context.Context) error
}

// Config is what a screen shows and how.
type Config struct {
	Context Context
	// Past is the log before the screen opens; it is shown in short, and
	// followed from there.
	Past []event.Event
	// Style paints; the zero value has no colours.
	Style show.Style
	// Width of the terminal in cells until it changes; 0 means 80.
	Width int
	// TaskQueue is where a worker takes what is sent; it is only told.
	TaskQueue string
	// Patience is how long an input may take to be in the log before the screen
	// says what it waits for; 0 means 5 seconds.
	Patience time.Duration
	// Farewell is what becomes of the answer when who waits for it leaves.
	Farewell string
	// Attach makes an attachment of a file or a URL.
	Attach func(place string) (event.Event, error)
}

// Run shows the screen on a terminal until the user leaves or ctx is done,
// whose error it returns then.
func Run(ctx context.Context, in io.Reader, out io.Writer, config Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(New(ctx, config),
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	_, err := program.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
