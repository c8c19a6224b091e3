package openai

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

// items folds a log into the items of a conversation.
type items struct {
	name    string
	all     []item
	files   []part
	attempt int               // counter of the event that began the newest attempt
	seen    map[string]string // names of tools by call
	clients map[string]bool   // tools that clients execute
}

func (s *items) add(e event.Event) {
	id := func(prefix string) string { return formatID(prefix, s.name, event.Counter(e.ID)) }
	switch body := e.Body.(type) {
	case event.SetTools:
		s.clients = setOf(functionsOf(body))
	case event.FileAttachment:
		p := part{Type: "input_file", FileName: body.FileName, FileURL: body.Source.URL}
		if event.MediaOf(body.MediaType) == event.MediaImage {
			p = part{Type: "input_image", ImageURL: body.Source.String(), Detail: "auto"}
		}
		s.files = append(s.files, p)
	case event.UserMessage:
		content := append(s.files, inputText(body.Content))
		s.files = nil
		s.all = append(s.all, item{Type: "message", ID: id("msg"), Role: "user", Status: statusCompleted, Content: &content})
	case event.LLMRequestStarted:
		s.attempt = event.Counter(e.ID)
	case event.AssistantMessage:
		status := statusCompleted
		if body.Partial {
			status = statusIncomplete
		}
		n := s.attempt
		if body.RequestID == "" {
			n = event.Counter(e.ID)
		}
		if body.Reasoning != "" {
			s.all = append(s.all, item{Type: "reasoning", ID: formatID("rs", s.name, n), Status: status, Summary: &[]part{summary(body.Reasoning)}})
		}
		if body.Content != "" {
			s.all = append(s.all, item{Type: "message", ID: formatID("msg", s.name, n), Role: "assistant", Status: status, Content: &[]part{outputText(body.Content)}})
		}
	case event.ToolCall:
		s.seen[body.ToolCallID] = body.ToolName
		i := item{Type: "function_call", ID: id("fc"), CallID: body.ToolCallID, Name: body.ToolName, Arguments: new(gateway.Arguments(body)), Status: statusCompleted}
		if body.RequestID != "" && !s.clients[body.ToolName] {
			i = item{Type: "mcp_call", ID: id("mcp"), Arguments: new(gateway.Arguments(body)), Status: statusInProgress}
			i.ServerLabel, i.Name = serverOf(body.ToolName)
			i.CallID = body.ToolCallID // until its result
		}
		s.all = append(s.all, i)
	case event.ApprovalRequested:
		asked := item{Type: "mcp_approval_request", ID: id(approvalPrefix)}
		for _, i := range s.all {
			if i.CallID == body.ToolCallID && i.Arguments != nil {
				asked.Arguments = i.Arguments
			}
		}
		asked.ServerLabel, asked.Name = serverOf(s.seen[body.ToolCallID])
		s.all = append(s.all, asked)
	case event.ToolResult:
		s.result(body, id("fco"))
	}
}

func (s *items) result(body event.ToolResult, id string) {
	for i := range s.all {
		if call := &s.all[i]; call.Type == "mcp_call" && call.CallID == body.ToolCallID {
			call.CallID, call.Status = "", statusCompleted
			if len(body.Error) > 0 {
				call.Status, call.Error = statusFailed, new(gateway.PlainText(body.Error))
			} else {
				call.Output = new(gateway.PlainText(body.Value))
			}
			return
		}
	}
	output := new(gateway.PlainText(slices.Concat(body.Value, body.Error)))
	s.all = append(s.all, item{Type: "function_call_output", ID: id, CallID: body.ToolCallID, Output: output, Status: statusCompleted})
}

// itemsThrough returns the items of the log up to an event; through 0: all.
func itemsThrough(h *gateway.Handle, through int) ([]item, error) {
	s := items{name: h.Name(), seen: map[string]string{}}
	for e, err := range h.Events("") {
		if err != nil {
			return nil, err
		}
		s.add(e)
		if event.Counter(e.ID) == through {
			break
		}
	}
	for i := range s.all {
		if s.all[i].Type == "mcp_call" {
			s.all[i].CallID = ""
		}
	}
	return s.all, nil
}

// writeItems writes a page of the items up to an event.
func writeItems(x *gateway.Exchange, h *gateway.Handle, through int) error {
	query := x.Request.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return gateway.BadRequest("limit", "limit %q is invalid (1 to 100)", event.Redact(text, 50))
		}
		limit = n
	}
	all, err := itemsThrough(h, through)
	if err != nil {
		return err
	}
	switch order := query.Get("order"); order {
	case "", "desc":
		slices.Reverse(all)
	case "asc":
	default:
		return gateway.BadRequest("order", "order %q is invalid (asc or desc)", event.Redact(order, 50))
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(all, func(i item) bool { return i.ID == after })
		if i < 0 {
			return gateway.BadRequest("after", "after %q is no item of the conversation", event.Redact(after, 200))
		}
		all = all[i+1:]
	}
	page := list[item]{Object: "list", Data: all, HasMore: len(all) > limit}
	page.Data = append([]item{}, all[:min(limit, len(all))]...)
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = page.Data[0].ID, page.Data[n-1].ID
	}
	x.JSON(http.StatusOK, page)
	return nil
}
