package event

// RequestEvent is the body of an event about a request.
type RequestEvent interface {
	Body
	// Request returns the id of the request; "" for a message or a call of a client.
	Request() string
}

// RequestEnd is the body of an event that ends a request. Every request ends exactly once in a log.
type RequestEnd interface {
	RequestEvent
	// Unanswered returns the ThroughEventID: the newest event that stays unanswered. After a completed
	// request, "" means none; after any other, it means the newest event in the request.
	Unanswered() string
}

// RequestOf returns the id of the request that a body is about; "" for none.
func RequestOf(body Body) string {
	if about, ok := body.(RequestEvent); ok {
		return about.Request()
	}
	return ""
}

func (b AssistantMessage) Request() string      { return b.RequestID }
func (b LLMRequestStarted) Request() string     { return b.RequestID }
func (b LLMRequestCompleted) Request() string   { return b.RequestID }
func (b LLMRequestInterrupted) Request() string { return b.RequestID }
func (b LLMRequestFailed) Request() string      { return b.RequestID }
func (b LLMRequestFellBack) Request() string    { return b.RequestID }
func (b LLMAttemptEnded) Request() string       { return b.RequestID }
func (b BudgetExceeded) Request() string        { return b.RequestID }
func (b ToolCall) Request() string              { return b.RequestID }
func (b ApprovalRequested) Request() string     { return b.RequestID }
func (b ToolProgress) Request() string          { return b.RequestID }
func (b TextDelta) Request() string             { return b.RequestID }
func (b ReasoningDelta) Request() string        { return b.RequestID }

func (b LLMRequestCompleted) Unanswered() string   { return b.ThroughEventID }
func (b LLMRequestInterrupted) Unanswered() string { return b.ThroughEventID }
func (b LLMRequestFailed) Unanswered() string      { return b.ThroughEventID }
