package llm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestServerWithoutVisionIsRetriedOnce(t *testing.T) {
	look := user("Look", blob("image/png", "a.png", []byte("png")))
	answer := reducer.Message{Role: reducer.RoleAssistant, Content: "A cat."}
	refusal := func(status int, message string) llmtest.Step { return llmtest.Error(status, "", message) }
	const (
		never = iota
		once
		often
	)
	tests := map[string]struct {
		messages []reducer.Message
		step     llmtest.Step
		retry    int
		kind     llm.Kind
	}{
		"OpenAI says 400":             {[]reducer.Message{look}, refusal(400, "Invalid content type. image_url is only supported by certain models."), never, llm.KindNoVision},
		"Ollama says 400":             {[]reducer.Message{look}, refusal(400, "this model does not support image input"), never, llm.KindNoVision},
		"LM Studio says 400":          {[]reducer.Message{look}, refusal(400, "Model does not support images. Please use a model that does."), never, llm.KindNoVision},
		"OpenRouter says 404":         {[]reducer.Message{look}, refusal(404, "No endpoints found that support image input"), never, llm.KindNoVision},
		"llama.cpp says 500":          {[]reducer.Message{look}, refusal(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"), never, llm.KindNoVision},
		"an older llama.cpp says 500": {[]reducer.Message{look}, refusal(500, `Failed to parse messages: Unsupported content part type: "image_url"`), never, llm.KindNoVision},
		"Ollama says 500":             {[]reducer.Message{look}, refusal(500, "this model is missing data required for image input"), never, llm.KindNoVision},
		"an error in the stream": {
			[]reducer.Message{look}, llmtest.Raw("text/event-stream", `data: {"error":{"message":"test is not a multimodal model"}}`+"\n\n"), never, llm.KindNoVision,
		},
		"an image in an earlier message": {[]reducer.Message{look, answer, user("And now?")}, refusal(500, "image input is not supported"), never, llm.KindNoVision},

		"a 500 without a reason":                      {[]reducer.Message{look}, refusal(500, "Internal Server Error"), once, llm.KindServer},
		"the same for an earlier image":               {[]reducer.Message{look, user("Well?")}, refusal(500, ""), once, llm.KindServer},
		"the same for a new image":                    {[]reducer.Message{look, answer, look}, refusal(500, ""), once, llm.KindServer},
		"a 500 after an answer to the image":          {[]reducer.Message{look, answer, user("And now?")}, refusal(500, ""), often, llm.KindServer},
		"a 503":                                       {[]reducer.Message{look}, refusal(503, "overloaded"), often, llm.KindServer},
		"a 429":                                       {[]reducer.Message{look}, refusal(429, "slow down"), often, llm.KindRateLimited},
		"a 400 for an invalid image is a bad request": {[]reducer.Message{look}, refusal(400, "Could not process image"), never, llm.KindBadRequest},
		"the message without an image in the request": {hello, refusal(500, "does not support images"), often, llm.KindServer},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := target(t, llmtest.Start(t, test.step)).Stream(within(t), test.messages, nil)
			failed := requireKind(t, test.kind, err)
			require.Equal(t, test.retry != never, failed.Retryable())
			require.Equal(t, test.retry == once, failed.RetryOnce)
			if test.kind == llm.KindNoVision || test.retry == once {
				require.ErrorContains(t, err, "textOnly")
			} else {
				require.NotContains(t, err.Error(), "textOnly")
			}
		})
	}
}
