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

// search returns the messages that match all clauses: the most relevant first, then the newest. Accepts decides, by the
// name, which contexts are searched. The hits have no titles.
func (s *store) search(ctx context.Context, clauses []clause, contextName string, accepts func(string) bool, from, limit int) ([]Hit, error) {
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
	hits := []Hit{}
	for _, d := range best.Results() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		hit, err := read(opened, d.ID, clauses)
		if err != nil {
			return nil, err
		}
		hits = append(hits, hit)
	}
	return hits, nil
}

func matching(ctx context.Context, r bleve.IndexReader, clauses []clause, contextName string) (search.Searcher, error) {
	var all []search.Searcher
	for _, c := range clauses {
		s, err := c.searcher(ctx, r)
		if err != nil {
			return nil, closeAll(all, err)
		}
		all = append(all, s)
	}
	if contextName != "" {
		s, err := searcher.NewTermSearcher(ctx, r, contextName, fieldContext, 0, search.SearcherOptions{})
		if err != nil {
			return nil, closeAll(all, err)
		}
		all = append(all, s)
	}
	both, err := searcher.NewConjunctionSearcher(ctx, r, all, search.SearcherOptions{})
	if err != nil {
		return nil, closeAll(all, err)
	}
	return both, nil
}

func (c clause) searcher(ctx context.Context, r bleve.IndexReader) (search.Searcher, error) {
	last := len(c.terms) - 1
	lastTerms := []string{c.terms[last]}
	if c.isPrefix {
		var err error
		if lastTerms, err = endings(r, c.terms[last]); err != nil {
			return nil, err
		}
	}
	if last == 0 {
		return searcher.NewMultiTermSearcher(ctx, r, lastTerms, fieldText, 1, search.SearcherOptions{}, false)
	}
	at := places{}
	var all []search.Searcher
	for i, term := range c.terms {
		terms := []string{term}
		if i == last {
			terms = lastTerms
		}
		isKnown := len(terms) == 1 && at[term] != 0
		for _, term := range terms {
			at[term] |= 1 << i
		}
		if isKnown {
			continue
		}
		s, err := searcher.NewMultiTermSearcher(ctx, r, terms, fieldText, 1, search.SearcherOptions{IncludeTermVectors: true}, false)
		if err != nil {
			return nil, closeAll(all, err)
		}
		all = append(all, s)
	}
	anywhere, err := searcher.NewConjunctionSearcher(ctx, r, all, search.SearcherOptions{IncludeTermVectors: true})
	if err != nil {
		return nil, closeAll(all, err)
	}
	return searcher.NewFilteringSearcher(ctx, anywhere, func(_ *search.SearchContext, d *search.DocumentMatch) bool {
		isPhrase := at.follow(d.FieldTermLocations, len(c.terms))
		d.FieldTermLocations = nil
		return isPhrase
	}), nil
}

// places are those of the terms in a phrase: bit 0 is the first place.
type places map[string]uint32

// follow reports whether all places of a phrase follow one another in a text. The phrase searcher of bleve takes quadratic
// time for a text that repeats a word.
func (p places) follow(locations []search.FieldTermLocation, length int) bool {
	var at []uint32 // the places of the word at each position of the text
	for _, l := range locations {
		n := int(l.Location.Pos)
		if n >= len(at) {
			at = append(at, make([]uint32, n+1-len(at))...)
		}
		at[n] |= p[l.Term]
	}
	var begun uint32 // bit n: the words up to this one are the first n+1 of the phrase
	for _, places := range at {
		if begun = (begun<<1 | 1) & places; begun>>(length-1) != 0 {
			return true
		}
	}
	return false
}

func closeAll(all []search.Searcher, err error) error {
	for _, s := range all {
		_ = s.Close()
	}
	return err
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

// read returns the hit for a document.
func read(r bleve.IndexReader, id string, clauses []clause) (h Hit, err error) {
	d, err := r.Document(id)
	if err != nil {
		return h, err
	}
	if d == nil {
		return h, fmt.Errorf("document %q is missing", id)
	}
	parts := strings.Split(id, "\x00")
	counter, err := strconv.Atoi(parts[2])
	if err != nil {
		return h, err
	}
	h.ContextName, h.EventID = parts[1], event.FormatID(parts[1], counter)
	d.VisitFields(func(field bleve.Field) {
		switch field.Name() {
		case fieldText:
			h.Fragments = fragments(string(field.Value()), clauses)
		case fieldRole:
			h.Role = string(field.Value())
		case fieldTime:
			h.Timestamp, err = time.Parse(timeFormat, string(field.Value()))
		}
	})
	return h, err
}
