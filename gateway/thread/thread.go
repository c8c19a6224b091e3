package thread

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Thread is what a context shows. Its zero value precedes the first event.
type Thread struct {
	Base     string     // begins the URLs of files that the gateway serves: [gateway.Exchange.PublicPath], or an absolute URL
	Entries  []Entry    // in the order of the conversation, in which an answer follows what it answers
	Requests []*Request // oldest first
	Clients  []string   // names of the tools that clients execute
	Last     int        // counter of the newest event
	Asked    int        // counter of the newest event that requires an answer
	Through  int        // counter of the newest event that requires none any more, or is in a request

	files    []File
	running  *Request            // nil: none
	requests map[string]*Request // by id
	calls    map[string]*Call    // newest, by id
	changes  []Change
}

// Entry is an element of a conversation: one of its fields.
type Entry struct {
	User   *User
	Step   *Step
	Result *Call // with its result
}

// User is a message of the user.
type User struct {
	event.UserMessage
	Event event.Event
	Files []File // before it
}

// First returns the id of the first event of the message.
func (u *User) First() string {
	if len(u.Files) > 0 {
		return u.Files[0].Event.ID
	}
	return u.Event.ID
}

// File is a file of a message.
type File struct {
	event.FileAttachment
	Event event.Event
	URL   string // where clients read it: on the web, or at the gateway, see [Thread.Base]
}

// Request is a request for an answer, or an answer that a client recorded.
type Request struct {
	ID                string // of the event, for an answer of a client
	IsEnded           bool
	Began, Ended      time.Time
	ProviderID, Model string // of the newest attempt
	Through           int    // counter of the newest event in it
	Usage             reducer.Usage
	Steps             []*Step
	End               event.RequestEnd // nil: it runs, or a client recorded the answer
}

// Step is an attempt that answers.
type Step struct {
	Request         *Request
	Attempt         int
	At              int // counter of the event that began it
	Reasoning, Text strings.Builder
	Calls           []*Call
	IsRunning       bool                   // the attempt runs, or its calls are being recorded
	IsAbandoned     bool                   // the log has no answer of it
	Answer          event.AssistantMessage // if it is recorded
	Event           event.Event            // that recorded the answer; zero: none has
}

// IsRecorded reports whether the log has the answer.
func (s *Step) IsRecorded() bool { return s.Event.ID != "" }

// Call is a call of a tool.
type Call struct {
	event.ToolCall
	At          int                      // counter of its event
	Step        *Step                    // nil: the call is unknown, and only its result is known
	IsClient    bool                     // a client executes it
	Approval    *event.ApprovalRequested // nil: it requires none
	Decision    *event.ApprovalDecided   // nil: there is none yet
	Progress    string
	Result      *event.ToolResult // newest; nil: there is none yet
	ResultEvent event.Event
}

// IsOpen reports whether the request of the call waits for its result.
func (c *Call) IsOpen() bool { return c.Result == nil && c.Step != nil && !c.Step.Request.IsEnded }

// IsAsked reports whether the call waits for a decision.
func (c *Call) IsAsked() bool { return c.Approval != nil && c.Decision == nil && c.Result == nil }

// Output returns the text of the result, and whether it is an error.
func (c *Call) Output() (text string, isError bool) {
	if c.Result.IsError || len(c.Result.Value) == 0 {
		return gateway.PlainText(slices.Concat(c.Result.Error, c.Result.Value)), true
	}
	return gateway.PlainText(c.Result.Value), false
}

// Clients returns the names of the tools that clients execute.
func Clients(tools event.SetTools) (names []string) {
	for _, tool := range tools.Tools {
		if tool.IsClient() {
			names = append(names, tool.Name)
		}
	}
	return names
}

// Running returns the request that runs; nil: none does. Events that clients record do not end it.
func (t *Thread) Running() *Request { return t.running }

// Request returns a request by its id; nil: there is none.
func (t *Thread) Request(id string) *Request { return t.requests[id] }

// Call returns the newest call with an id; nil: there is none.
func (t *Thread) Call(id string) *Call { return t.calls[id] }

// newest returns the newest step; nil: there is none.
func (r *Request) newest() *Step {
	if r == nil || len(r.Steps) == 0 {
		return nil
	}
	return r.Steps[len(r.Steps)-1]
}

// Waiting returns the calls of a request that wait for clients: for results, and for decisions. There are none if something
// else continues the request.
func (r *Request) Waiting() (results, decisions []*Call) {
	s := r.newest()
	if s == nil || r.IsEnded || s.IsRunning {
		return nil, nil
	}
	for _, c := range s.Calls {
		switch {
		case c.Result != nil:
		case c.IsAsked():
			decisions = append(decisions, c)
		case c.IsClient:
			results = append(results, c)
		default:
			return nil, nil
		}
	}
	return results, decisions
}
