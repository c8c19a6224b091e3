package llm

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-9ed7edd4/chronicle/event"
)

type mediaSet uint8

const (
	images mediaSet = 1 << event.MediaImage
	audio  mediaSet = 1 << event.MediaAudio
	pdfs   mediaSet = 1 << event.MediaPDF
)

func (s mediaSet) has(media event.Media) bool { return s&(1<<media) != 0 }

func mediaIn(m message) (found mediaSet) {
	for _, p := range m.parts {
		switch p.Type {
		case "image_url":
			found |= images
		case "input_audio":
			found |= audio
		case "file", "document_url":
			found |= pdfs
		}
	}
	return found
}

func isAnswer(m message) bool { return m.role == openai.ChatMessageRoleAssistant }

// mediaRefusals match the messages with which servers reject a kind of media.
var mediaRefusals = []struct {
	media    mediaSet
	kind     Kind
	noun     string
	messages *regexp.Regexp
}{
	{images, KindNoVision, "image", refusalOf(`images?|vision`, `image(_url)?`, `required for image input`)},
	{pdfs, KindNoPDF, "PDF", refusalOf(`pdfs?|files?|documents?`, `(file|document(_url)?)`)},
	{audio, KindNoAudio, "audio file", refusalOf(`audio`, `(input_)?audio`)},
}

// refusalOf returns a pattern for messages that reject a kind of media. The arguments are patterns: for words
// that name the media, for the type of its content parts, and for more such messages.
func refusalOf(words, part string, more ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join(append(more,
		`(does not|doesn't|not) (currently )?(support|accept|take|allow|have)\w* ?(for )?\W?(`+words+`|multi-?modal)`,
		`\b(`+words+`|`+part+`)\W?( (inputs?|content|parts?|urls?))? (is|are) (not|only) (supported|enabled|allowed)`,
		`(unsupported content (part )?type|unknown (variant|part type)|invalid (content (part )?type|value))\W+`+part+`\b`,
		`\bsupport ((`+words+`) input|input (`+words+`))`,
		`at most 0 (`+words+`)`,
		`not a (multi-?modal|vision) model`), `|`))
}

func refusedMedia(message string) (refused mediaSet) {
	for _, refusal := range mediaRefusals {
		if refusal.messages.MatchString(message) {
			refused |= refusal.media
		}
	}
	return refused
}

// suspectMedia changes the error if the model probably rejects a kind of media in the conversation. Some servers say
// so, which sets the kind. Others respond with a 500, which sets RetryOnce, unless an answer after the latest content
// part shows that the model accepts it.
func (e *Error) suspectMedia(sent conversation) {
	if sent.media&images == 0 && sent.media&pdfs != 0 && e.refused&images != 0 {
		e.refused |= pdfs // some servers call a PDF an image
	}
	var nouns []string
	for _, refusal := range mediaRefusals {
		if sent.media&refusal.media == 0 {
			continue
		}
		nouns = append(nouns, refusal.noun)
		switch e.Kind {
		case KindBadRequest, KindNotFound, KindServer:
			if e.refused&refusal.media != 0 {
				e.Kind = refusal.kind
				e.Message += mediaAdvice(refusal.noun)
				return
			}
		}
	}
	if len(nouns) > 0 && e.Status == http.StatusInternalServerError && e.Kind == KindServer && !sent.isSeen {
		e.RetryOnce = true
		e.Message += mediaAdvice(nouns...)
	}
}

// Models that reject images usually accept only text, so the advice names "accepts" only for other media.
func mediaAdvice(nouns ...string) string {
	setting := "textOnly"
	if nouns[len(nouns)-1] != "image" {
		setting = `textOnly, or the field "accepts" in the file of --providers,`
	}
	return fmt.Sprintf(" (set %s to send a note instead of each %s)", setting, strings.Join(nouns, " and "))
}
