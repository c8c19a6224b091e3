package agui

import (
	"encoding/json"
	"net/http"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// Protocol serves AG-UI below /ag-ui/.
func Protocol() gateway.Protocol {
	return gateway.Protocol{
		Path: "/ag-ui/",
		Fail: func(w http.ResponseWriter, p *gateway.Problem) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(p.Status)
			_ = json.NewEncoder(w).Encode(failure(p)) // an error means that the client disconnected
		},
		Routes: []gateway.ProtocolRoute{
			{Pattern: "POST /ag-ui/run", Operation: "aguiRun", Roles: []auth.Role{auth.RoleRead, auth.RoleWrite, auth.RoleApprove}, Serve: serveRun},
			{Pattern: "POST /ag-ui/threads/{thread}/stop", Operation: "aguiStop", Roles: []auth.Role{auth.RoleWrite}, Serve: stop},
		},
	}
}

func failure(p *gateway.Problem) frame {
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	return frame{Type: "RUN_ERROR", Message: message, Code: string(p.Type)}
}

func stop(x *gateway.Exchange) error {
	h, err := x.Open(x.Request.PathValue("thread"))
	if err == nil {
		err = h.Interrupt()
	}
	if err == nil {
		x.NoContent()
	}
	return err
}

func serveRun(x *gateway.Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	in, err := decode(body)
	if err != nil {
		return err
	}
	h, err := x.Open(in.ThreadID)
	if err != nil {
		return err
	}
	snap, err := h.Snapshot()
	if err != nil {
		return err
	}
	start := snap.Last
	if snap.Request != "" {
		start = snap.Before
	}
	t, at, err := read(h, snap.Last, start)
	if err != nil {
		return err
	}
	known, added, err := compare(t, in.Messages)
	if err != nil {
		return err
	}
	input, err := in.events(t, added)
	if err != nil {
		return err
	}
	if len(input) == 0 && snap.Status == "" {
		return gateway.BadRequest("messages", "the context does not exist, and there is no message to begin it with")
	}
	r := &run{in: in, thread: at, known: known, input: map[string]bool{}, from: event.Counter(snap.Last)}
	header := []frame{{Type: "RUN_STARTED", ThreadID: in.ThreadID, RunID: in.RunID, ProtocolVersion: "1.0"}}
	if !known.isSame {
		header = append(header, at.snapshot(added))
		r.known = at.known()
	}
	r.known.remember(added)
	if len(input) > 0 {
		receipt, err := h.Send(input...)
		if err != nil {
			return err
		}
		r.await(receipt)
	}
	begin := func(of ...frame) (frames []byte) {
		for _, f := range append(header, of...) {
			frames = append(frames, encode(f)...)
		}
		return frames
	}
	if len(input) == 0 && !isRunning(t, snap) {
		if !known.isSame {
			header[1] = t.snapshot(nil)
		}
		last, isPaused := t.pause()
		if !isPaused {
			last = frame{Type: "RUN_FINISHED", Outcome: &outcome{Type: "success"}}
		}
		return x.Stream(h, start, gateway.Stream{Begin: begin(r.identified(last))})
	}
	return x.Stream(h, start, gateway.Stream{
		Begin: begin(),
		Next:  r.next,
		Fail:  func(p *gateway.Problem) []byte { return encode(failure(p)) },
	})
}

// isRunning reports whether the context answers, and not only waits for clients.
func isRunning(t *thread, snap gateway.Snapshot) bool {
	_, isPaused := t.pause()
	return snap.Request != "" && !isPaused
}

// read returns the thread as it is, and as it was at an earlier event.
func read(h *gateway.Handle, newest, earlier string) (now, at *thread, err error) {
	now, at = newThread(), newThread()
	if newest == "" {
		return now, at, nil
	}
	for e, err := range h.Events("") {
		if err != nil {
			return nil, nil, err
		}
		now.apply(e)
		if event.Counter(e.ID) <= event.Counter(earlier) {
			at.apply(e)
		}
		if event.Counter(e.ID) >= event.Counter(newest) {
			break
		}
	}
	return now, at, nil
}
