package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	bleve "github.com/blevesearch/bleve_index_api"
)

// Fields of the documents in a store: one per message, and one per context.
const (
	fieldText    = "text"    // of a message
	fieldRole    = "role"    // of a message
	fieldTime    = "time"    // of a message, in timeFormat
	fieldContext = "context" // name of the context of a message
	fieldKind    = "kind"    // kindContext, or kindPurge
	fieldRecord  = "record"  // of a context, as JSON
)

const (
	kindContext = "context"
	kindPurge   = "purge" // documents were deleted, and their text may still be in files
)

// store is an index of bleve in a directory. Searches find a batch at once; it is on disk within about a second.
type store struct {
	scorch   *scorch.Scorch
	analysis *bleve.AnalysisQueue
	dir      string

	removing sync.Mutex
	removals int // number of calls of remove
}

// logs has the loggers of open stores, by directory, for errors of what bleve does in the background.
var logs sync.Map

const (
	callback     = "chronicle"
	failureDelay = time.Second
)

func init() {
	scorch.RegistryAsyncErrorCallbacks[callback] = func(err error, dir string) {
		if log, ok := logs.Load(dir); ok {
			log.(*slog.Logger).Error("the index is not written to disk", "directory", dir, "error", err)
		}
		time.Sleep(failureDelay) // bleve tries again at once
	}
}

// analyzers is the number of messages that are analyzed at once.
const analyzers = 2

// openStore creates the directory if necessary. It fails for a directory that bleve did not write, or that is corrupt.
func openStore(dir string, log *slog.Logger) (s *store, err error) {
	// bbolt panics on corrupt pages, and a file that was cut causes a fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("open index: %v", problem)
		}
	}()
	existing, err := filepath.Glob(filepath.Join(dir, "*.zap"))
	if err != nil {
		return nil, err
	}
	s = &store{analysis: bleve.NewAnalysisQueue(analyzers), dir: dir}
	logs.Store(dir, log)
	opened, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path": dir, "bolt_timeout": "1s", "asyncErrorCallbackName": callback,
		"unsafe_batch": true, // a batch returns when it is found; what a crash loses is read from the logs again
	}, s.analysis)
	if err == nil {
		s.scorch = opened.(*scorch.Scorch)
		err = s.scorch.Open()
	}
	if err != nil {
		s.analysis.Close()
		logs.Delete(dir)
		return nil, fmt.Errorf("open index: %w", err)
	}
	files, _, err := s.segments()
	if err == nil && len(files) == 0 && len(existing) > 0 {
		err = errors.New("bleve cannot read the files")
	}
	if err == nil {
		err = s.verify()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("open index: %w", err)
	}
	return s, nil
}

// close loses what is not on disk, see [store.sync].
func (s *store) close() {
	_ = s.scorch.Close()
	s.analysis.Close()
	logs.Delete(s.dir)
}

// Ids of documents. The names of contexts contain no zero byte.

func contextID(name string) string { return "c\x00" + name }

// Ids of a document that marks a need, see [kindPurge], and of one that marks nothing.
const purgeID, syncID = "p", "s"

func messageID(name string, counter int) string {
	return "m\x00" + name + "\x00" + strconv.Itoa(counter)
}

// timeFormat is that of times in UTC. The texts compare as the times do.
const timeFormat = "2006-01-02T15:04:05.000000000"

func keyword(name, value string, options bleve.FieldIndexingOptions) document.Field {
	return document.NewTextFieldCustom(name, nil, []byte(value), options, nil)
}

// message is a message in a log.
type message struct {
	counter int
	role    string
	at      time.Time
	text    string
}

func (m message) document(contextName string) *document.Document {
	return document.NewDocument(messageID(contextName, m.counter)).
		AddField(document.NewTextFieldCustom(fieldText, nil, []byte(m.text), bleve.IndexField|bleve.StoreField|bleve.IncludeTermVectors, analyzer{})).
		AddField(keyword(fieldRole, m.role, bleve.StoreField)).
		AddField(keyword(fieldTime, m.at.UTC().Format(timeFormat), bleve.IndexField|bleve.StoreField|bleve.DocValues)).
		AddField(keyword(fieldContext, contextName, bleve.IndexField|bleve.DocValues))
}

// change is what a batch does to the documents of a context, all or nothing.
type change struct {
	record   *record // to store
	messages []message
	deleted  []string // ids of documents, which may also be among the messages
}

func (s *store) apply(c change) error {
	data, err := json.Marshal(c.record)
	if err != nil {
		return err
	}
	batch := bleve.NewBatch()
	for _, id := range c.deleted {
		batch.Delete(id)
	}
	for _, m := range c.messages {
		batch.Update(m.document(c.record.ContextName))
	}
	batch.Update(document.NewDocument(contextID(c.record.ContextName)).
		AddField(keyword(fieldKind, kindContext, bleve.IndexField)).
		AddField(keyword(fieldRecord, string(data), bleve.StoreField)))
	return s.scorch.Batch(batch)
}

// remove deletes the documents of a context. Their text stays in files until [store.purge].
func (s *store) remove(name string) error {
	ids, err := s.messageIDs(name)
	if err != nil {
		return err
	}
	batch := bleve.NewBatch()
	for _, id := range append(ids, contextID(name)) {
		batch.Delete(id)
	}
	batch.Update(purgeMark())
	s.removing.Lock()
	defer s.removing.Unlock()
	s.removals++
	return s.scorch.Batch(batch)
}

// messageIDs returns the ids of the messages of a context.
func (s *store) messageIDs(name string) ([]string, error) { return s.ids(fieldContext, name) }

func (s *store) ids(field, term string) (ids []string, err error) {
	r, err := s.scorch.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	documents, err := r.TermFieldReader(context.Background(), []byte(term), field, false, false, false)
	if err != nil {
		return nil, err
	}
	defer documents.Close()
	for {
		d, err := documents.Next(nil)
		if err != nil || d == nil {
			return ids, err
		}
		id, err := r.ExternalID(d.ID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
}

// records returns those of all contexts.
func (s *store) records() (records []*record, err error) {
	ids, err := s.ids(fieldKind, kindContext)
	if err != nil {
		return nil, err
	}
	r, err := s.scorch.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, id := range ids {
		d, err := r.Document(id)
		if err != nil {
			return nil, err
		}
		next := new(record)
		d.VisitFields(func(field bleve.Field) {
			if field.Name() == fieldRecord {
				err = json.Unmarshal(field.Value(), next)
			}
		})
		if err != nil {
			return nil, err
		}
		records = append(records, next)
	}
	return records, nil
}
