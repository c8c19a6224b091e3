package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// Branches are the contexts that are related by forks, up to 1,000.
type Branches struct {
	// The root, from which the others descend, and these, the newest first.
	Contexts []Branch `json:"contexts"`
	// Where the log of this context has alternatives, in its order.
	Choices []Choice `json:"choices"`
	// Whether some contexts are missing, because there are too many.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Branch is a context in [Branches].
type Branch struct {
	ContextName string `json:"contextName" schema:"is=ContextName"`
	// The newest event that it shares with the context that it was forked from; absent for the root.
	ForkedFrom string    `json:"forkedFrom,omitempty" schema:"is=EventID"`
	CreatedAt  time.Time `json:"createdAt,omitzero"` // of the fork; absent for the root
	// Set by a SetDetailsEvent; absent for a branch with the title of the root, and for all but the root and the newest 199.
	Title string `json:"title,omitempty"`
	// The beginning of the first message that it does not share, up to 120 characters; absent without one, and for all but
	// the root and the newest 199.
	Preview string `json:"preview,omitempty"`
}

// Choice is a place where the logs of branches part.
type Choice struct {
	After string `json:"after" schema:"is=EventID"` // the newest event that they share, in this context
	// The context with each continuation, oldest first: this context, and for each other continuation the one that began it.
	Contexts []string `json:"contexts" schema:"min=2,items.is=ContextName"`
}

const (
	maxBranches       = 1000
	concurrentListing = 64
)

// Branches returns the branches of the conversation that the context belongs to. The error is ErrNoContext,
// ErrNoArchive or ErrOtherStore, or that of the blob store.
func (c *Context) Branches(ctx context.Context) (Branches, error) {
	if c.client.options.Archive == nil {
		return Branches{}, fmt.Errorf("list the branches of context %s: %w", c.Name(), ErrNoArchive)
	}
	if err := c.checkStore(ctx, "list the branches of"); err != nil {
		return Branches{}, err
	}
	f := family{client: c.client, of: map[string]archive.Origin{}}
	err := c.checkExists(ctx, "list the branches of")
	if err == nil {
		err = f.addAncestors(ctx, c.name)
	}
	isIncomplete := false
	if err == nil {
		isIncomplete, err = f.addForks(ctx)
	}
	if err != nil {
		return Branches{}, err
	}
	names := f.names()
	slices.Reverse(names)
	names = slices.Insert(names, 0, f.root)
	branches := f.branches(names)
	return Branches{branches, f.choices(c.name), isIncomplete}, f.describe(ctx, names, branches)
}

// checkExists returns ErrNoContext for a context that neither the archive nor the server has.
func (c *Context) checkExists(ctx context.Context, operation string) error {
	_, err := c.client.options.Archive.Origin(ctx, c.name)
	if !errors.Is(err, archive.ErrNoRun) {
		return err
	}
	_, err = c.client.options.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(c.name), "")
	return c.explain(ctx, operation, err, ErrBusy)
}

// family is a tree of forks.
type family struct {
	client *Client
	root   string
	of     map[string]archive.Origin // by fork
}

// addAncestors adds a context and those from which it descends.
func (f *family) addAncestors(ctx context.Context, name string) error {
	for f.root = name; ; {
		origin, err := f.client.originOf(ctx, f.root)
		if err != nil || origin == nil {
			return err
		}
		f.of[f.root] = *origin
		f.root = origin.ContextName
	}
}

// addForks adds the forks of the root, their forks, and so on.
func (f *family) addForks(ctx context.Context) (isIncomplete bool, err error) {
	isListed := map[string]bool{}
	for level := []string{f.root}; len(level) > 0; {
		found := make([][]archive.Fork, len(level))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(concurrentListing)
		for i, name := range level {
			isListed[name] = true
			group.Go(func() (err error) {
				found[i], err = f.client.options.Archive.Forks(ctx, name)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return false, err
		}
		level = nil
		for _, fork := range slices.Concat(found...) {
			if _, isKnown := f.of[fork.ContextName]; !isKnown && len(f.of) >= maxBranches-1 {
				return true, nil
			}
			if f.of[fork.ContextName] = fork.Origin; !isListed[fork.ContextName] {
				level = append(level, fork.ContextName)
			}
		}
	}
	return false, nil
}

func (f *family) branches(names []string) []Branch {
	branches := make([]Branch, len(names))
	for i, name := range names {
		branches[i].ContextName = f.client.context(name).Name()
		if origin, isFork := f.of[name]; isFork {
			branches[i].ForkedFrom, branches[i].CreatedAt = event.FormatID(origin.ContextName, origin.At), origin.CreatedAt
		}
	}
	return branches
}

// names returns the names of the forks, the oldest first.
func (f *family) names() []string {
	names := make([]string, 0, len(f.of))
	for name := range f.of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(f.of[a].CreatedAt.Compare(f.of[b].CreatedAt), cmp.Compare(a, b))
	})
	return names
}

// choices returns where the logs of other contexts leave that of name.
func (f *family) choices(name string) []Choice {
	choices := []Choice{}
	places := map[int]bool{}
	all := append([]string{f.root}, f.names()...)
	for _, fork := range all[1:] {
		at := f.of[fork].At
		if places[at] || f.owner(fork, at) != f.owner(name, at) {
			continue
		}
		places[at] = true
		own := f.owner(name, at+1)
		var contexts []string
		for _, other := range all {
			owner := f.owner(other, at+1)
			if owner == own {
				owner = name
			}
			shown := f.client.context(owner).Name()
			if f.owner(other, at) == f.owner(name, at) && !slices.Contains(contexts, shown) {
				contexts = append(contexts, shown)
			}
		}
		choices = append(choices, Choice{event.FormatID(name, at), contexts})
	}
	slices.SortFunc(choices, func(a, b Choice) int { return event.Counter(a.After) - event.Counter(b.After) })
	return choices
}

// owner returns the context that recorded an event of a log. It would have recorded one after the end of the log.
func (f *family) owner(name string, counter int) string {
	for {
		origin, isFork := f.of[name]
		if !isFork || counter > origin.At {
			return name
		}
		name = origin.ContextName
	}
}
