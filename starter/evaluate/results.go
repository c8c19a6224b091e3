package evaluate

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"syscall"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Settings are what an evaluation compares with the record.
type Settings struct {
	Provider *event.SetProviderConfig `json:"provider,omitempty"` // nil: as recorded
	System   *string                  `json:"system,omitempty"`   // nil: as recorded
}

// Variant is one of the two configurations that answer each question.
type Variant string

// Variants.
const (
	Baseline  Variant = "baseline"  // the recorded configuration
	Candidate Variant = "candidate" // that of the [Settings]
)

// Evaluation returns the evaluation of a question.
func (s Settings) Evaluation(q Question, v Variant) client.Evaluation {
	e := client.Evaluation{Through: q.Through, Answer: q.Answer}
	if v == Candidate {
		e.Provider, e.System = s.Provider, s.System
	}
	return e
}

// Results are the answers so far, in a file of JSON lines: a header, and a line per answer. An evaluation that is cut off
// continues with its file. It is safe for concurrent use.
type Results struct {
	header header
	mu     sync.Mutex
	file   *os.File
	all    map[string]client.Evaluated // by key
	failed map[string]int              // number of answers with an error, by key
}

type header struct {
	ID       string   `json:"id"` // of the evaluation
	Settings Settings `json:"settings"`
}

type resultLine struct {
	Key    string           `json:"key"`
	Result client.Evaluated `json:"result"`
}

// Open opens or creates a file of results, and locks it. The error says that the file has other settings, that it is none
// of results, or that another process has locked it.
func Open(path string, settings Settings) (*Results, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	r := &Results{file: file, all: map[string]client.Evaluated{}, failed: map[string]int{}}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // until the file is closed
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another evaluation uses the file (wait for its end, or name another file)")
	}
	if err == nil {
		err = r.load(settings)
	}
	if err != nil {
		_ = file.Close() // err says more
		return nil, fmt.Errorf("results %s: %w", path, err)
	}
	return r, nil
}

func (r *Results) load(settings Settings) error {
	data, err := io.ReadAll(r.file)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		r.header = header{ID: rand.Text(), Settings: settings}
		return r.write(r.header)
	}
	end := bytes.LastIndexByte(data, '\n') + 1 // the last line may have been cut off
	for i, line := range bytes.Split(bytes.TrimSuffix(data[:end], []byte("\n")), []byte("\n")) {
		if i == 0 {
			if err := json.Unmarshal(line, &r.header); err != nil || r.header.ID == "" {
				return errors.New("line 1: not the results of an evaluation (name another file)")
			}
			if !reflect.DeepEqual(r.header.Settings, settings) {
				return errors.New("another provider, model or system prompt (name another file)")
			}
			continue
		}
		var one resultLine
		if err := json.Unmarshal(line, &one); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		r.add(one)
	}
	_, err = r.file.Seek(int64(end), io.SeekStart)
	return errors.Join(r.file.Truncate(int64(end)), err)
}

func (r *Results) add(one resultLine) {
	r.all[one.Key] = one.Result
	if one.Result.Error != "" {
		r.failed[one.Key]++
	}
}

func (r *Results) write(value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		_, err = r.file.Write(append(data, '\n'))
	}
	return err
}

// Get returns an answer; the zero value if there is none.
func (r *Results) Get(q Question, v Variant) client.Evaluated {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[keyOf(q, v)]
}

// next returns the id, in its context, of the evaluation of a question that has no answer without an error; "": it has
// one. The id is the same after a restart, so that an answer which was on its way is not requested again.
func (r *Results) next(q Question, v Variant) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := keyOf(q, v)
	if known, ok := r.all[key]; ok && known.Error == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s/%s/%d", r.header.ID, q.Answer, v, r.failed[key])
}

func (r *Results) put(q Question, v Variant, result client.Evaluated) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := resultLine{keyOf(q, v), result}
	r.add(one)
	return r.write(one)
}

func keyOf(q Question, v Variant) string { return q.key() + "/" + string(v) }

// Close closes the file.
func (r *Results) Close() error { return r.file.Close() }
