package a2a

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

type taskParams struct {
	common
	ID string `json:"id"`
}

// onTask serves an operation on a task.
func onTask(serve func(r *request, h *gateway.Handle, t *turn, in taskParams) error) func(*request) error {
	return func(r *request) error {
		in, err := decode[taskParams](r)
		if err != nil {
			return err
		}
		h, t, err := load(r, in.ID)
		if err != nil {
			return err
		}
		return serve(r, h, t, in)
	}
}

// load returns a task as the log shows it.
func load(r *request, id string) (*gateway.Handle, *turn, error) {
	unknown := failure(taskNotFound, "%s", event.Redact(id, 200))
	n := event.Counter(id)
	if n == 0 {
		return nil, nil, unknown
	}
	h, err := r.x.Open(id[:strings.LastIndexByte(id, ':')])
	if err != nil {
		return nil, nil, unknown // the name is invalid
	}
	now, err := h.Snapshot()
	if errors.Is(err, client.ErrDeleted) || err == nil && event.Counter(now.Last) < n {
		return nil, nil, unknown
	}
	if err != nil {
		return nil, nil, err
	}
	t := newTurn(h.Name(), r.newThread(now.Setup.Tools), n)
	for e, err := range h.Events(event.IDBefore(h.Name(), n-maxParts)) { // from the files of the message
		if err != nil {
			return nil, nil, err
		}
		if t.add(gateway.Item{Event: e}); t.isDone() {
			break
		}
	}
	if t.Status.State == "" {
		return nil, nil, unknown
	}
	return h, t, nil
}

func getTask(r *request, _ *gateway.Handle, t *turn, in taskParams) error {
	return r.reply(t.show(in.HistoryLength))
}

func subscribe(r *request, h *gateway.Handle, t *turn, _ taskParams) error {
	if t.isDone() {
		return failure(unsupportedOperation, "the task has ended with %s (get it)", t.Status.State)
	}
	return r.stream(h, t, nil, t.isDone)
}

// cancelTask stops the answer of a task, and returns how it ended.
func cancelTask(r *request, h *gateway.Handle, t *turn, _ taskParams) error {
	if t.isDone() {
		return failure(taskNotCancelable, "the task has ended with %s", t.Status.State)
	}
	now, err := h.Snapshot()
	if err != nil {
		return err
	}
	if t.request == nil || now.Request != t.request.ID {
		return failure(taskNotCancelable, "the task waits for the end of another answer (cancel that, or wait)")
	}
	if err := h.Interrupt(); err != nil {
		return err
	}
	if err := t.await(h, t.isDone); err != nil {
		return err
	}
	return r.reply(t.show(nil))
}

type listParams struct {
	common
	ContextID        string `json:"contextId"`
	Status           state  `json:"status"`
	PageSize         *int   `json:"pageSize"`
	PageToken        string `json:"pageToken"`
	After            string `json:"statusTimestampAfter"`
	IncludeArtifacts bool   `json:"includeArtifacts"`
}

type taskList struct {
	Tasks         []*task `json:"tasks"`
	NextPageToken string  `json:"nextPageToken"` // the id of the last task
	PageSize      int     `json:"pageSize"`
	TotalSize     int     `json:"totalSize"`
}

const stateUnspecified state = "TASK_STATE_UNSPECIFIED"

var states = []state{
	stateUnspecified, stateSubmitted, stateWorking, stateInputRequired, stateCompleted, stateFailed, stateCanceled, stateRejected, "TASK_STATE_AUTH_REQUIRED",
}

// listTasks lists the tasks of a context, the newest status first, without their histories by default.
func listTasks(r *request) error {
	in, err := decode[listParams](r)
	if err != nil {
		return err
	}
	wanted := cmp.Or(in.Status, stateUnspecified)
	size := *cmp.Or(in.PageSize, new(50))
	after, err := time.Parse(time.RFC3339, cmp.Or(in.After, "0001-01-01T00:00:00Z"))
	switch {
	case in.ContextID == "":
		return gateway.BadRequest("contextId", "contextId is missing (a list has the tasks of one context)")
	case err != nil:
		return gateway.BadRequest("statusTimestampAfter", "statusTimestampAfter is no timestamp of ISO 8601")
	case size < 1 || size > 100:
		return gateway.BadRequest("pageSize", "pageSize is %d (1 to 100)", size)
	case !slices.Contains(states, wanted):
		return gateway.BadRequest("status", "status %q is unknown", event.Redact(string(in.Status), 40))
	}
	h, err := r.x.Open(in.ContextID)
	if err != nil {
		return err
	}
	all, err := r.tasksOf(in.ContextID, h.Events(""))
	if err != nil && !errors.Is(err, client.ErrNoContext) {
		return err
	}
	all = slices.DeleteFunc(all, func(t *turn) bool {
		return wanted != stateUnspecified && t.Status.State != wanted || t.Status.Timestamp < timestamp(after)
	})
	slices.SortFunc(all, func(a, b *turn) int {
		return cmp.Or(cmp.Compare(b.Status.Timestamp, a.Status.Timestamp), cmp.Compare(b.trigger, a.trigger))
	})
	list := taskList{Tasks: []*task{}, PageSize: size, TotalSize: len(all)}
	if in.PageToken != "" {
		last := slices.IndexFunc(all, func(t *turn) bool { return t.ID == in.PageToken })
		if last < 0 {
			return gateway.BadRequest("pageToken", "pageToken is unknown (list again from the beginning)")
		}
		all = all[last+1:]
	}
	if len(all) > size {
		all = all[:size]
		list.NextPageToken = all[size-1].ID
	}
	for _, t := range all {
		shown := t.show(cmp.Or(in.HistoryLength, new(0)))
		if !in.IncludeArtifacts {
			shown.Artifacts = nil
		}
		list.Tasks = append(list.Tasks, shown)
	}
	return r.reply(list)
}

// tasksOf returns the tasks of a context. They share one thread: many may wait for the same answer.
func (r *request) tasksOf(contextID string, log iter.Seq2[event.Event, error]) (all []*turn, err error) {
	shared := r.newThread(event.SetTools{})
	var open []*turn
	for e, err := range log {
		if err != nil {
			return nil, err
		}
		changes := shared.Apply(gateway.Item{Event: e})
		body, isRejected := e.Body.(event.InputRejected)
		if event.RequiresAnswer(e.Body) || isRejected && strings.Contains(body.Input, string(event.TagUserMessage)) {
			t := newTurn(contextID, shared, event.Counter(e.ID))
			all, open = append(all, t), append(open, t)
		}
		for _, t := range open {
			t.fold(e, changes)
			t.updates = nil
		}
		open = slices.DeleteFunc(open, (*turn).isDone)
	}
	return all, nil
}
