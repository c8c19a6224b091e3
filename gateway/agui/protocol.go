package agui

import (
	"encoding/json"
	"net/http"

	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
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
	now := &thread.Thread{Base: x.PublicPath()}
	for e, err := range h.EventsThrough("", snap.Last) {
		if err != nil {
			return err
		}
		now.Apply(gateway.Item{Event: e})
	}
	has := messagesOf(now)
	added, isSame, err := compare(now, has, in.Messages)
	if err != nil {
		return err
	}
	input, err := in.events(now, snap.Setup, added)
	if err != nil {
		return err
	}
	if len(input) == 0 && snap.Status == "" {
		return gateway.BadRequest("messages", "the context does not exist, and there is no message to begin it with")
	}
	r := newRun(in, now, thread.Offers(h))
	r.add(frame{Type: "RUN_STARTED", ThreadID: in.ThreadID, RunID: in.RunID, ProtocolVersion: protocolVersion})
	if !isSame {
		r.add(snapshotOf(append(has, added...)))
	}
	if len(input) > 0 {
		receipt, err := h.Send(input...)
		if err != nil {
			return err
		}
		r.await(receipt)
	}
	r.settle()
	s := gateway.Stream{Begin: r.frames(), Fail: func(p *gateway.Problem) []byte { return encode(failure(p)) }}
	if !r.isDone {
		s.Next = r.next
	}
	return x.Stream(h, snap.Last, s)
}
