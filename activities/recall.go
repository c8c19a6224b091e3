package activities

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/eventlog"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A new session begins with what the log of the earlier ones amounts to. That
// may be more than a history takes in one piece, so it is compressed and handed
// over in parts.

// RecallPartBytes is the size of a part; in a history it takes a third more, and
// with a blob store, where there is one part as a rule, nothing.
const (
	RecallPartBytes       = 768 << 10
	storedRecallPartBytes = 64 << 20
)

// OpenInput says what a run begins with.
type OpenInput struct {
	ContextName string `json:"contextName"`
	// ContinuedRunID is the run that this one continues; "" when it begins a
	// session: then the one before is looked for.
	ContinuedRunID string `json:"continuedRunId,omitempty"`
	// Recall says that the session before is wanted.
	Recall bool `json:"recall,omitempty"`
}

// OpenResult is what a run begins with.
type OpenResult struct {
	// PreviousRunID is the run with the session before; "" for the first.
	PreviousRunID string `json:"previousRunId,omitempty"`
	// ForkedFrom is the event that the context was forked from, when it has had no
	// session since; else "".
	ForkedFrom string `json:"forkedFrom,omitempty"`
	// Parts is how many parts [Activities.Recall] has; 0 without a log.
	Parts int `json:"parts,omitempty"`
	// PartBytes is the size of a part; 0 means [RecallPartBytes].
	PartBytes int `json:"partBytes,omitempty"`
	// PackedSum is the SHA-256 of all parts together, in hex.
	PackedSum string `json:"packedSum,omitempty"`
	// Rules are those of the session. The result stands in the history, so a run
	// keeps them whatever its workers become.
	Rules reducer.Rules `json:"rules,omitempty"`
	// SearchAttributes is decided here, once for the session, since workers may
	// differ.
	SearchAttributes bool   `json:"searchAttributes"`
	DefaultModel     string `json:"defaultModel,omitempty"`
	// Archives says that the run archives its log before it ends.
	Archives bool `json:"archives,omitempty"`
	// ContinueAfter is how many entries a history has before another run goes
	// on; 0 leaves it to the server.
	ContinueAfter int `json:"continueAfter,omitempty"`
}

// Open decides how a run goes about its work, and finds the log of a context that
// earlier runs left.
func (a *Activities) Open(ctx context.Context, in OpenInput) (OpenResult, error) {
	result := OpenResult{
		PreviousRunID: in.ContinuedRunID, Rules: a.options.Rules,
		SearchAttributes: a.options.SearchAttributes, DefaultModel: a.options.DefaultModel,
		Archives: a.options.Archive != nil, ContinueAfter: a.options.ContinueAfter,
	}
	var err error
	if in.ContinuedRunID == "" {
		run := activity.GetInfo(ctx).WorkflowExecution.RunID
		if result.PreviousRunID, err = a.log.Previous(ctx, in.ContextName, run); err != nil {
			return result, err
		}
	}
	if !in.Recall || result.PreviousRunID == "" && a.options.Archive == nil {
		return result, nil
	}
	packed, err := a.recall(ctx, in.ContextName, result.PreviousRunID)
	size := RecallPartBytes
	if a.options.Archive != nil {
		size, result.PartBytes = storedRecallPartBytes, storedRecallPartBytes
	}
	result.Parts = (len(packed) + size - 1) / size
	if result.Parts > 1 {
		result.PackedSum = sumOf(packed)
	}
	if err == nil && result.Parts > 0 && result.PreviousRunID == "" {
		result.ForkedFrom, err = a.forkedFrom(ctx, in.ContextName)
	}
	return result, err
}

// forkedFrom is the event that a context was forked from; "" when it was not, or
// has events of its own already.
func (a *Activities) forkedFrom(ctx context.Context, contextName string) (string, error) {
	origin, ok, err := a.options.Archive.Origin(ctx, contextName)
	if err != nil || !ok {
		return "", err
	}
	last, err := a.options.Archive.Last(ctx, contextName)
	if err != nil || last > origin.At {
		return "", err
	}
	return event.FormatID(origin.ContextName, origin.At), nil
}

// RecallInput says which part of what to recall, counted from 0.
type RecallInput struct {
	ContextName string `json:"contextName"`
	// PreviousRunID is the run up to which to recall; "": all that is archived.
	PreviousRunID string `json:"previousRunId"`
	Part          int    `json:"part"`
	// PartBytes and PackedSum are those of the [OpenResult].
	PartBytes int    `json:"partBytes,omitempty"`
	PackedSum string `json:"packedSum,omitempty"`
}

// ErrorRepacked is the type of the application error of [Activities.Recall] when
// this worker packs the same session in another way than the one that answered
// [Activities.Open]: their code differs. The parts do not fit together then, and
// what to do is to open again.
const ErrorRepacked = "Repacked"

// Recall returns a part of what the log up to a run amounts to. All parts
// together are for [Unpack].
func (a *Activities) Recall(ctx context.Context, in RecallInput) ([]byte, error) {
	packed, err := a.recall(ctx, in.ContextName, in.PreviousRunID)
	if err != nil {
		return nil, err
	}
	if in.PackedSum != "" && in.PackedSum != sumOf(packed) {
		return nil, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("recall context %s: the parts before come from a worker that packs it in another way", in.ContextName), ErrorRepacked, nil)
	}
	size := cmp.Or(in.PartBytes, RecallPartBytes)
	begin := in.Part * size
	if begin > len(packed) {
		return nil, fmt.Errorf("recall context %s: there is no part %d of %d bytes", in.ContextName, in.Part, len(packed))
	}
	return packed[begin:min(begin+size, len(packed))], nil
}

// recalled keeps the newest session that was packed, since its parts are asked
// for one after the other. The log up to a run that has ended does not change.
type recalled struct {
	mu     sync.Mutex
	key    string
	packed []byte
}

func (r *recalled) get(key string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packed, r.key == key
}

func (r *recalled) put(key string, packed []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.key, r.packed = key, packed
}

func (a *Activities) recall(ctx context.Context, contextName, runID string) ([]byte, error) {
	if runID == "" {
		// All that is archived, which grows.
		return a.pack(ctx, contextName, runID)
	}
	key := contextName + " " + runID
	if packed, ok := a.recalled.get(key); ok {
		return packed, nil
	}
	packed, err := a.pack(ctx, contextName, runID)
	if err == nil {
		a.recalled.put(key, packed)
	}
	return packed, err
}

func (a *Activities) pack(ctx context.Context, contextName, runID string) ([]byte, error) {
	var events []event.Event
	for e, err := range a.log.UpTo(ctx, contextName, runID) {
		if errors.Is(err, eventlog.ErrNoContext) {
			// Listed, but the retention of the server has taken it.
			break
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		return nil, nil
	}
	return Pack(reducer.Load(contextName, a.options.Reduce, events...))
}

func sumOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// Pack compresses a session. It is done within a workflow task, so it is done
// fast.
func Pack(session reducer.Session) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(session); err != nil {
		return nil, fmt.Errorf("pack the session of context %s: %w", session.ContextName, err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Unpack is the session that was packed.
func Unpack(packed []byte) (reducer.Session, error) {
	var session reducer.Session
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var data []byte
		// All of it is read, so that its checksum is.
		if data, err = io.ReadAll(r); err == nil {
			err = json.Unmarshal(data, &session)
		}
	}
	if err != nil {
		return session, fmt.Errorf("unpack a session of %d bytes: %w", len(packed), err)
	}
	return session, nil
}
