package openai

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/thread"
)

func reasoningItem(name string, s *thread.Step, text, status string) item {
	i := item{Type: "reasoning", ID: formatID("rs", name, s.At), Status: status, Summary: &[]part{}}
	if text != "" {
		i.Summary = &[]part{summary(text)}
	}
	return i
}

// messageItem returns the message of a step; without a text, it has no content yet.
func messageItem(name string, s *thread.Step, text *string, status string) item {
	i := item{Type: "message", ID: formatID("msg", name, s.At), Role: "assistant", Status: status, Content: &[]part{}}
	if text != nil {
		i.Content = &[]part{outputText(*text)}
	}
	return i
}

// answerItems returns the items of a recorded answer, without its calls.
func answerItems(name string, s *thread.Step) (items []item) {
	if s.Answer.Reasoning != "" {
		items = append(items, reasoningItem(name, s, s.Answer.Reasoning, statusOf(s)))
	}
	if s.Answer.Content != "" {
		items = append(items, messageItem(name, s, &s.Answer.Content, statusOf(s)))
	}
	return items
}

func statusOf(s *thread.Step) string {
	if s.Answer.Partial {
		return statusIncomplete
	}
	return statusCompleted
}

// isFunction reports whether a client executes a call, or did.
func isFunction(c *thread.Call) bool { return c.IsClient || c.RequestID == "" }

// callItem returns a call; one of a worker, with its result.
func callItem(name string, c *thread.Call) item {
	arguments := gateway.Arguments(c.ToolCall)
	if isFunction(c) {
		return item{Type: "function_call", ID: formatID("fc", name, c.At), CallID: c.ToolCallID, Name: c.ToolName, Arguments: &arguments, Status: statusCompleted}
	}
	i := item{Type: "mcp_call", ID: formatID("mcp", name, c.At), Arguments: &arguments, Status: statusInProgress}
	i.ServerLabel, i.Name = serverOf(c.ToolName)
	if c.Result != nil {
		text, isError := c.Output()
		if i.Status, i.Output = statusCompleted, &text; isError {
			i.Status, i.Output, i.Error = statusFailed, nil, &text
		}
	}
	return i
}

func approvalItem(c *thread.Call) item {
	i := item{Type: "mcp_approval_request", ID: approvalPrefix + c.ToolCallID, Arguments: new(gateway.Arguments(c.ToolCall))}
	i.ServerLabel, i.Name = serverOf(c.ToolName)
	return i
}

func userItem(name string, u *thread.User) item {
	var content []part
	for _, f := range u.Files {
		p := part{Type: "input_file", FileName: f.FileName, FileURL: f.Source.URL}
		if event.MediaOf(f.MediaType) == event.MediaImage {
			p = part{Type: "input_image", ImageURL: f.Source.String(), Detail: "auto"}
		}
		content = append(content, p)
	}
	content = append(content, inputText(u.Content))
	return item{Type: "message", ID: formatID("msg", name, event.Counter(u.Event.ID)), Role: "user", Status: statusCompleted, Content: &content}
}

// itemsOf returns the items of a conversation after a change, in the order in which a model reads them: an answer precedes the
// messages that its request did not contain.
func itemsOf(items []item, name string, change thread.Change) []item {
	switch change := change.(type) {
	case thread.Said:
		return append(items, userItem(name, change.User))
	case thread.Answered:
		place, through := len(items), change.Step.Request.Through
		for through > 0 && place > 0 && items[place-1].Role == "user" && items[place-1].counter() > through {
			place--
		}
		return slices.Insert(items, place, answerItems(name, change.Step)...)
	case thread.Called:
		return append(items, callItem(name, change.Call))
	case thread.Asked:
		return append(items, approvalItem(change.Call))
	case thread.Returned:
		c := change.Call
		if c.Step != nil && !isFunction(c) {
			return replaced(items, callItem(name, c))
		}
		output, _ := c.Output()
		return append(items, item{
			Type: "function_call_output", ID: formatID("fco", name, event.Counter(c.ResultEvent.ID)), CallID: c.ToolCallID, Output: &output, Status: statusCompleted,
		})
	}
	return items
}

// counter returns that of the event that an item is about.
func (i item) counter() int { return event.Counter("n:" + i.ID[strings.LastIndexByte(i.ID, '_')+1:]) }

// replaced replaces the item with the same id.
func replaced(items []item, by item) []item {
	for i := range items {
		if items[i].ID == by.ID {
			items[i] = by
		}
	}
	return items
}

// itemsThrough returns the items of the log up to an event; through 0: all.
func itemsThrough(h *gateway.Handle, through int) (all []item, err error) {
	var t thread.Thread
	for e, err := range h.Events("") {
		if err != nil {
			return nil, err
		}
		for _, change := range t.Apply(gateway.Item{Event: e}) {
			all = itemsOf(all, h.Name(), change)
		}
		if t.Last == through {
			break
		}
	}
	return all, nil
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
	x.JSON(http.StatusOK, pageOf(all, limit))
	return nil
}

// pageOf returns the first items.
func pageOf(all []item, limit int) list[item] {
	page := list[item]{Object: "list", Data: append([]item{}, all[:min(limit, len(all))]...), HasMore: len(all) > limit}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = page.Data[0].ID, page.Data[n-1].ID
	}
	return page
}
