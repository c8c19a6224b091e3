package llm

import (
	"net/http"
	"regexp"

	"github.com/sashabaranov/go-openai"
)

// noVision matches messages of servers that reject an image, with a 400, a 404 or a 500.
var noVision = regexp.MustCompile(`(?i)` +
	`(does not|doesn't|not) (currently )?(support|accept|take|allow|have)\w* ?(for )?\W?(images?|vision|multi-?modal)|` +
	`images?(_url)?\W?( (inputs?|content|parts?|urls?))? (is|are) (not|only) (supported|enabled|allowed)|` +
	`unsupported content (part )?type\W+image|unknown (variant|part type)\W+image|` +
	`support image input|required for image input|at most 0 image|not a (multi-?modal|vision) model`)

const visionAdvice = " (set textOnly to send a note instead of each image)"

// suspectImages checks whether a failure is that of a model without vision.
//
// Some servers say so. Others only fail with a 500, like a temporary failure, which justifies
// one more attempt. An answer after the latest image shows that the model accepts images.
func (e *Error) suspectImages(sent conversation) {
	if !sent.hasImage {
		return
	}
	switch e.Kind {
	case KindBadRequest, KindNotFound, KindServer:
		if e.blamesImages {
			e.Kind = KindNoVision
			e.Message += visionAdvice
			return
		}
	}
	if e.Status == http.StatusInternalServerError && e.Kind == KindServer && !sent.isSeen {
		e.RetryOnce = true
		e.Message += visionAdvice
	}
}

func hasImage(m openai.ChatCompletionMessage) bool {
	for _, part := range m.MultiContent {
		if part.Type == openai.ChatMessagePartTypeImageURL {
			return true
		}
	}
	return false
}

func isAnswer(m openai.ChatCompletionMessage) bool { return m.Role == openai.ChatMessageRoleAssistant }
