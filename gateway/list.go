package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-9ed7edd4/chronicle/internal/index"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
)

// tenantIndex is the index of the contexts of a tenant. It opens when it is needed.
type tenantIndex struct {
	source  index.Source
	options index.Options

	mu       sync.Mutex // held while it opens
	opened   atomic.Pointer[index.Index]
	isClosed bool
}

// noTenant is the name of the directory of the index of contexts without a tenant. No tenant has this name.
const noTenant = "_"

func (g *Gateway) newIndex(tenant string, source index.Source) *tenantIndex {
	i := &tenantIndex{source: source, options: index.Options{Log: g.options.Log}}
	if tenant == "" {
		tenant = noTenant
	}
	if g.options.IndexDir != "" {
		i.options.Dir = filepath.Join(g.options.IndexDir, tenant)
	}
	return i
}

func (i *tenantIndex) open() (*index.Index, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isClosed {
		return nil, errClosing
	}
	if opened := i.opened.Load(); opened != nil {
		return opened, nil
	}
	opened, err := index.Open(i.source, i.options)
	if err != nil {
		return nil, err
	}
	i.opened.Store(opened)
	return opened, nil
}

// changed tells the index, if it is open, that a context may have changed.
func (i *tenantIndex) changed(name string) {
	if opened := i.opened.Load(); opened != nil {
		opened.Changed(name)
	}
}

func (i *tenantIndex) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.isClosed = true
	if opened := i.opened.Load(); opened != nil {
		opened.Close()
	}
}

// openIndexes opens the indexes that exist, so that they follow their contexts and lose those that are deleted, and that of
// all contexts without authentication.
func (g *Gateway) openIndexes() {
	names := []string{}
	if g.options.Auth == nil {
		names = append(names, "")
	}
	entries, _ := os.ReadDir(g.options.IndexDir) // an error means that there are none
	for _, entry := range entries {
		if name := entry.Name(); name == noTenant {
			names = append(names, "")
		} else {
			names = append(names, name)
		}
	}
	for _, name := range names {
		t, err := g.tenants.of(name)
		if err != nil {
			continue // a file of somebody else
		}
		if _, err := t.index.open(); err != nil {
			g.options.Log.Warn("the index was not opened", "tenant", name, "error", err)
		}
	}
}

// contextIndex returns the index for a request. It reports an outage of Temporal at once.
func (g *Gateway) contextIndex(ctx context.Context, t *tenant) (*index.Index, error) {
	if err := g.probe.check(ctx); err != nil {
		return nil, err
	}
	return t.index.open()
}

const (
	defaultPage = 100
	maxPage     = 1000
)

func parseLimit(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, badRequest("limit %q: invalid (1 to %d)", text, maxPage)
	}
	return n, nil
}

type contextPage struct {
	Contexts []index.Context `json:"contexts"`
	Next     string          `json:"next,omitempty"` // the path of the next page; absent on the last page
	unread
}

// unread is how many contexts an index that is being built has not read.
type unread struct {
	// How many logs the gateway has not read yet, as after its first start. Their contexts are listed without createdAt,
	// owner, preview and archive mark, and no search finds their messages.
	Unread int `json:"unread,omitempty"`
}

func parseFilter(query url.Values) (f index.Filter, err error) {
	if f.Limit, err = parseLimit(query); err != nil {
		return f, err
	}
	f.Part, f.Owner, f.Status = query.Get("q"), query.Get("owner"), wire.Status(query.Get("status"))
	if statuses := []wire.Status{"", wire.StatusIdle, wire.StatusWaiting, wire.StatusClosed}; !slices.Contains(statuses, f.Status) {
		return f, badRequest("status %q: invalid (idle, waiting or closed)", f.Status)
	}
	if f.Label, err = parseLabel(query); err != nil {
		return f, err
	}
	switch archived := query.Get("archived"); archived {
	case "", "false":
	case "true":
		f.Archived = true
	default:
		return f, badRequest("archived %q: invalid (true or false)", archived)
	}
	f.After, err = parsePosition(query.Get("from"))
	return f, err
}

func parseLabel(query url.Values) (string, error) {
	label := query.Get("label")
	if label != "" && !strings.Contains(label, "=") {
		return "", badRequest("label %q: invalid (KEY=VALUE)", label)
	}
	return label, nil
}

// listContexts lists contexts by descending `lastActiveAt`, then by name.
//
// It lists those that are not archived, or, with `archived=true`, the others. A context that is active while a client
// reads pages moves to the beginning; each of the others is on exactly one page. The list follows changes within about a
// second.
func (g *Gateway) listContexts(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	filter, err := parseFilter(query)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	contexts, err := g.contextIndex(ctx, tenantOf(r))
	if err != nil {
		return err
	}
	found, more, err := contexts.List(ctx, filter)
	if err != nil {
		return err
	}
	page := contextPage{Contexts: found, unread: unread{contexts.Unread()}}
	if more {
		query.Set("from", formatPosition(index.PositionOf(found[len(found)-1])))
		page.Next = g.options.PublicPath + "/contexts?" + query.Encode()
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}

func formatPosition(p index.Position) string {
	text, _ := json.Marshal(p) // a time and a string always encode
	return base64.RawURLEncoding.EncodeToString(text)
}

func parsePosition(text string) (p index.Position, err error) {
	if text == "" {
		return p, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, badRequest("from: invalid (use the value of a next link)")
	}
	return p, nil
}

type hitPage struct {
	Hits []index.Hit `json:"hits"`
	Next string      `json:"next,omitempty"` // the path of the next page; absent on the last page
	unread
}

// searchMessages searches the messages of users and models: the most relevant ones first, then the newest.
//
// A message matches if it has all words of `q`, in any order, and the words of each phrase in double quotes next to each
// other. The last word may be the beginning of a longer one. Upper and lower case are the same. Fragments are plain text
// from around the first match, without line breaks. There are at most 1,000 hits.
func (g *Gateway) searchMessages(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	q := index.Query{Text: query.Get("q"), ContextName: query.Get("context")}
	var err error
	if q.Limit, err = parseLimit(query); err != nil {
		return err
	}
	if q.Label, err = parseLabel(query); err != nil {
		return err
	}
	if from := query.Get("from"); from != "" {
		if q.From, err = strconv.Atoi(from); err != nil || q.From < 0 || q.From > index.MaxHits {
			return badRequest("from: invalid (use the value of a next link)")
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	contexts, err := g.contextIndex(ctx, tenantOf(r))
	if err != nil {
		return err
	}
	hits, more, err := contexts.Search(ctx, q)
	if err != nil {
		return err
	}
	page := hitPage{Hits: hits, unread: unread{contexts.Unread()}}
	if more {
		query.Set("from", strconv.Itoa(q.From+len(hits)))
		page.Next = g.options.PublicPath + "/search?" + query.Encode()
	}
	writeJSON(w, http.StatusOK, page)
	return nil
}
