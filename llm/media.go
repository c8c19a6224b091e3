package llm

import (
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
