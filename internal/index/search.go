package index

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/collector"
	"github.com/blevesearch/bleve/v2/search/searcher"
	bleve "github.com/blevesearch/bleve_index_api"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Query selects messages.
type Query struct {
	Text        string // words that a message contains, phrases in quotes, see [MaxQuery]
	ContextName string // of the messages; empty: any
	Label       string // KEY=VALUE, of the context; empty: any
	From        int    // number of hits to skip, at most MaxHits
	Limit       int    // at least 1
}

// MaxHits bounds the hits of a query over all pages.
const MaxHits = 1000

// Hit is a message that matches a query.
type Hit struct {
	ContextName string     `json:"contextName" schema:"is=ContextName"`
	Title       string     `json:"title,omitempty"` // of the context
	EventID     string     `json:"eventId" schema:"is=EventID"`
	Role        string     `json:"role"` // user or assistant
	Timestamp   time.Time  `json:"timestamp"`
	Fragments   []Fragment `json:"fragments"`
}

// found is a message that matches.
type found struct {
	contextName string
	message
}

// search returns the messages that match all clauses: the most relevant first, then the newest. Accepts decides, by the
// name, which contexts are searched.
func (s *store) search(ctx context.Context, clauses []clause, contextName string, accepts func(string) bool, from, limit int) ([]found, error) {
	opened, err := s.scorch.Reader()
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	matching, err := matching(ctx, opened, clauses, contextName)
	if err != nil {
		return nil, err
	}
	names, err := opened.DocValueReader([]string{fieldContext})
	if err != nil {
		return nil, err
	}
	var visitErr error
	filtered := searcher.NewFilteringSearcher(ctx, matching, func(_ *search.SearchContext, d *search.DocumentMatch) (isAccepted bool) {
		err := names.VisitDocValues(d.IndexInternalID, func(_ string, name []byte) { isAccepted = accepts(string(name)) })
		if err != nil {
			visitErr = err
		}
		return isAccepted
	})
	defer filtered.Close()
	best := collector.NewTopNCollector(limit, from, search.SortOrder{
		&search.SortScore{Desc: true}, &search.SortField{Field: fieldTime, Desc: true, Type: search.SortFieldAsString},
	})
	if err := best.Collect(ctx, filtered, opened); err != nil {
		return nil, err
	}
	if visitErr != nil {
		return nil, visitErr
	}
	var all []found
	for _, d := range best.Results() {
		f, err := read(opened, d.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func matching(ctx context.Context, r bleve.IndexReader, clauses []clause, contextName string) (search.Searcher, error) {
	var all []search.Searcher
	fail := func(err error) (search.Searcher, error) {
		for _, s := range all {
			_ = s.Close()
		}
		return nil, err
	}
	for _, c := range clauses {
		s, err := c.searcher(ctx, r)
		if err != nil {
			return fail(err)
		}
		all = append(all, s)
	}
	if contextName != "" {
		s, err := searcher.NewTermSearcher(ctx, r, contextName, fieldContext, 0, search.SearcherOptions{})
		if err != nil {
			return fail(err)
		}
		all = append(all, s)
	}
	both, err := searcher.NewConjunctionSearcher(ctx, r, all, search.SearcherOptions{})
	if err != nil {
		return fail(err)
	}
	return both, nil
}

func (c clause) searcher(ctx context.Context, r bleve.IndexReader) (search.Searcher, error) {
	positions := make([][]string, len(c.terms))
	for i, term := range c.terms {
		positions[i] = []string{term}
	}
	if last := len(positions) - 1; c.isPrefix {
		endings, err := endings(r, c.terms[last])
		if err != nil {
			return nil, err
		}
		positions[last] = endings
	}
	if len(positions) == 1 {
		return searcher.NewMultiTermSearcher(ctx, r, positions[0], fieldText, 1, search.SearcherOptions{}, false)
	}
	return searcher.NewMultiPhraseSearcher(ctx, r, positions, 0, false, fieldText, 1, search.SearcherOptions{})
}

// endings returns a term, and the most frequent ones that begin with it.
func endings(r bleve.IndexReader, prefix string) ([]string, error) {
	terms, err := r.FieldDictPrefix(fieldText, []byte(prefix))
	if err != nil {
		return nil, err
	}
	defer terms.Close()
	var all []bleve.DictEntry
	for range maxScanned {
		entry, err := terms.Next()
		if err != nil {
			return nil, err
		}
		if entry == nil {
			break
		}
		if entry.Term != prefix {
			all = append(all, *entry)
		}
	}
	slices.SortStableFunc(all, func(a, b bleve.DictEntry) int { return int(b.Count) - int(a.Count) })
	found := []string{prefix}
	for _, entry := range all[:min(len(all), maxEndings)] {
		found = append(found, entry.Term)
	}
	return found, nil
}

// read returns the message of a document.
func read(r bleve.IndexReader, id string) (f found, err error) {
	d, err := r.Document(id)
	if err != nil {
		return f, err
	}
	if d == nil {
		return f, fmt.Errorf("document %q is missing", id)
	}
	parts := strings.Split(id, "\x00")
	f.contextName = parts[1]
	if f.counter, err = strconv.Atoi(parts[2]); err != nil {
		return f, err
	}
	d.VisitFields(func(field bleve.Field) {
		switch field.Name() {
		case fieldText:
			f.text = string(field.Value())
		case fieldRole:
			f.role = string(field.Value())
		case fieldTime:
			f.at, err = time.Parse(timeFormat, string(field.Value()))
		}
	})
	return f, err
}

func (f found) hit(title string, clauses []clause) Hit {
	return Hit{
		ContextName: f.contextName, Title: title, EventID: event.FormatID(f.contextName, f.counter), Role: f.role, Timestamp: f.at,
		Fragments: fragments(f.text, clauses),
	}
}
