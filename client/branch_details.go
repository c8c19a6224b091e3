package client

import (
	"context"
	"sync"
	"time"

	"github.com/golang/groupcache/lru"
	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/preview"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

const (
	maxDescribed        = 200 // branches with a title and a preview
	concurrentDescribed = 16
	maxPreviewEvents    = 100 // between the beginning of a branch and its first message
)

// previews caches those of forks, whose first messages stay.
type previews struct {
	mu    sync.Mutex
	texts *lru.Cache // by fork
}

type fork struct {
	name      string
	createdAt time.Time // zero: unknown
}

const maxPreviews = 10_000

func (p *previews) get(of fork) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, _ := p.texts.Get(of)
	known, _ := text.(string)
	return known
}

func (p *previews) add(of fork, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts.Add(of, text)
}

// describe adds the titles and previews of branches. One whose log or run cannot be read has none.
func (f *family) describe(ctx context.Context, names []string, branches []Branch) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentDescribed)
	for i, name := range names[:min(len(names), maxDescribed)] {
		group.Go(func() error {
			c := f.client.context(name)
			branches[i].Title = c.title(ctx)
			branches[i].Preview = c.previewAfter(ctx, f.of[name])
			return ctx.Err()
		})
	}
	err := group.Wait()
	for i := range branches[1:] {
		if fork := &branches[1+i]; fork.Title == branches[0].Title {
			fork.Title = ""
		}
	}
	return err
}

func (c *Context) title(ctx context.Context) string {
	d, err := c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	if err != nil {
		return ""
	}
	return c.client.summaryOf(c.name, d.GetWorkflowExecutionInfo()).Title
}

// previewAfter returns the beginning of the first message after the events that the context shares with an origin.
func (c *Context) previewAfter(ctx context.Context, origin archive.Origin) string {
	of := fork{c.name, origin.CreatedAt}
	if text := c.client.previews.get(of); text != "" {
		return text
	}
	text := c.firstMessage(ctx, origin.At)
	if text != "" && !of.createdAt.IsZero() { // else another context may have the name later
		c.client.previews.add(of, text)
	}
	return text
}

func (c *Context) firstMessage(ctx context.Context, after int) string {
	from := ""
	if after > 0 {
		from = event.FormatID(c.name, after)
	}
	n := 0
	for e, err := range c.Events(ctx, from) {
		text := ""
		switch body := e.Body.(type) {
		case event.UserMessage:
			text = body.Content
		case event.AssistantMessage:
			text = body.Content
		}
		if text = preview.Of(text); err != nil || text != "" {
			return text
		}
		if n++; n == maxPreviewEvents {
			break
		}
	}
	return ""
}
