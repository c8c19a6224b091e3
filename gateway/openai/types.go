package openai

import (
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// response is the object of the API. The fields that the log does not have are those of the request, or their defaults.
type response struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	CreatedAt         int64              `json:"created_at"`
	Status            string             `json:"status"`
	Background        bool               `json:"background"`
	Error             *responseError     `json:"error"`
	IncompleteDetails *incompleteDetails `json:"incomplete_details"`
	Instructions      *string            `json:"instructions"`
	MaxOutputTokens   *int               `json:"max_output_tokens"`
	Model             string             `json:"model"`
	Output            []item             `json:"output"`
	ParallelToolCalls bool               `json:"parallel_tool_calls"`
	Previous          *string            `json:"previous_response_id"`
	Conversation      *reference         `json:"conversation"`
	Reasoning         reasoning          `json:"reasoning"`
	Store             bool               `json:"store"`
	Temperature       *float64           `json:"temperature"`
	Text              textConfig         `json:"text"`
	ToolChoice        any                `json:"tool_choice"`
	Tools             []any              `json:"tools"`
	TopP              *float64           `json:"top_p"`
	Truncation        string             `json:"truncation"`
	Usage             *tokens            `json:"usage"`
	Metadata          map[string]string  `json:"metadata"`

	name  string // of the context
	usage reducer.Usage
}

const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

type (
	responseError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	incompleteDetails struct {
		Reason string `json:"reason"`
	}
	reference struct {
		ID string `json:"id"`
	}
	reasoning struct {
		Effort  *string `json:"effort"`
		Summary *string `json:"summary"`
	}
	textConfig struct {
		Format    format  `json:"format"`
		Verbosity *string `json:"verbosity,omitempty"`
	}
	format struct {
		Type        string       `json:"type"`
		Name        string       `json:"name,omitempty"`
		Description string       `json:"description,omitempty"`
		Schema      event.Object `json:"schema,omitempty"`
		Strict      *bool        `json:"strict,omitempty"`
	}
	tokens struct {
		InputTokens        int `json:"input_tokens"`
		InputTokensDetails struct {
			CachedTokens     int `json:"cached_tokens"`
			CacheWriteTokens int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputTokens        int `json:"output_tokens"`
		OutputTokensDetails struct {
			ReasoningTokens int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
		TotalTokens int `json:"total_tokens"`
	}
)

func usageOf(u reducer.Usage) *tokens {
	t := &tokens{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens}
	t.InputTokensDetails.CachedTokens = u.CachedTokens
	t.OutputTokensDetails.ReasoningTokens = u.ReasoningTokens
	return t
}

// item is an item of a conversation. Its fields depend on its type.
type item struct {
	Type        string  `json:"type"`
	ID          string  `json:"id"`
	Status      string  `json:"status,omitempty"`
	Role        string  `json:"role,omitempty"`
	Content     *[]part `json:"content,omitempty"`
	Summary     *[]part `json:"summary,omitempty"`
	CallID      string  `json:"call_id,omitempty"`
	Name        string  `json:"name,omitempty"`
	Arguments   *string `json:"arguments,omitempty"`
	ServerLabel string  `json:"server_label,omitempty"`
	Output      *string `json:"output,omitempty"`
	Error       *string `json:"error,omitempty"`

	ApprovalRequestID string `json:"approval_request_id,omitempty"`
	Approve           *bool  `json:"approve,omitempty"`
	Reason            string `json:"reason,omitempty"`
}

type part struct {
	Type        string  `json:"type"`
	Text        *string `json:"text,omitempty"`
	Annotations *[]any  `json:"annotations,omitempty"`
	Logprobs    *[]any  `json:"logprobs,omitempty"`
	ImageURL    string  `json:"image_url,omitempty"`
	Detail      string  `json:"detail,omitempty"`
	FileName    string  `json:"filename,omitempty"`
	FileURL     string  `json:"file_url,omitempty"`
}

func outputText(text string) part {
	return part{Type: "output_text", Text: &text, Annotations: &[]any{}, Logprobs: &[]any{}}
}

func inputText(text string) part { return part{Type: "input_text", Text: &text} }

func summary(text string) part { return part{Type: "summary_text", Text: &text} }

// list is a page of a list.
type list[T any] struct {
	Object  string `json:"object"`
	Data    []T    `json:"data"`
	FirstID string `json:"first_id"`
	LastID  string `json:"last_id"`
	HasMore bool   `json:"has_more"`
}

// Ids name a context and a counter, so that nothing needs to be stored for them: resp_demo_0004 is the response to the
// event demo:0004. A conversation is a context, and has its name as id.
const (
	responsePrefix = "resp"
	approvalPrefix = "mcpr_" // the rest is the id of the call
)

func formatID(prefix, name string, counter int) string {
	return prefix + "_" + strings.Replace(event.FormatID(name, counter), ":", "_", 1)
}

// parseID is the inverse of formatID.
func parseID(prefix, id string) (name string, counter int, ok bool) {
	rest, ok := strings.CutPrefix(id, prefix+"_")
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 1 {
		return "", 0, false
	}
	name, counter = rest[:i], event.Counter("n:"+rest[i+1:])
	return name, counter, counter > 0 && event.ValidateLocalName(name) == nil
}

// ownPrefix begins the names of contexts that were made for one request.
const ownPrefix = "resp-"

// Models are named PROVIDER/MODEL; one without a provider is one of openai. The model of the context is called "default".
const defaultModel = "default"

func modelName(provider, model string) string { return fmt.Sprintf("%s/%s", provider, model) }

func setModel(name string) event.SetProviderConfig {
	provider, model, ok := strings.Cut(name, "/")
	if !ok {
		provider, model = "openai", name
	}
	return event.SetProviderConfig{ProviderID: provider, Model: model}
}
