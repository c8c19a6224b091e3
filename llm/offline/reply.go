package offline

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sashabaranov/go-openai"
)

const (
	greeting = "I am the offline model built into Chronicle (no API key is set), so I only repeat."
	maxCount = 1000
	maxQuote = 300
)

var countTo = regexp.MustCompile(`(?i)\bcount\s+(?:up\s+)?to\s+(\d+)`)

func reply(messages []openai.ChatCompletionMessage) string {
	// said counts the user messages. The others are the indices of the newest one, the one before it,
	// and the newest answer; -1: none.
	said, last, before, answer := 0, -1, -1, -1
	for i := range messages {
		switch messages[i].Role {
		case openai.ChatMessageRoleUser:
			said, last, before = said+1, i, last
		case openai.ChatMessageRoleAssistant:
			answer = i
		}
	}
	if results := newestResults(messages); len(results) > 0 {
		return greeting + " " + strings.Join(results, " ")
	}
	if said == 0 {
		return greeting + " You have not said anything yet."
	}
	newest := read(messages[last])
	sentences := []string{greeting, fmt.Sprintf("This is your %s message%s.", ordinal(said), quoteBehind(newest.text))}
	if len(newest.attachments) > 0 {
		sentences = append(sentences, fmt.Sprintf("It came with %s.", list(newest.attachments)))
	}
	if answer >= 0 && len(messages[answer].ToolCalls) == 0 && isCutOff(messages[answer].Content, messages[:answer]) {
		sentences = append(sentences, fmt.Sprintf("My last answer was cut off after %s.", quoteEnd(messages[answer].Content)))
	}
	if before >= 0 {
		sentences = append(sentences, fmt.Sprintf("Before it you said: %s.", quote(read(messages[before]).text)))
	}
	if match := countTo.FindStringSubmatch(newest.text); match != nil {
		sentences = append(sentences, count(match[1]))
	}
	return strings.Join(sentences, " ")
}

// isCutOff reports whether text is an incomplete prefix of the answer to the messages before.
func isCutOff(text string, before []openai.ChatCompletionMessage) bool {
	whole := reply(before)
	return text != whole && strings.HasPrefix(whole, text)
}

func count(digits string) string {
	to, err := strconv.Atoi(digits)
	if err != nil || to > maxCount {
		to = maxCount
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Counting to %d:", to)
	for i := 1; i <= to; i++ {
		fmt.Fprintf(&b, " %d", i)
	}
	return b.String() + "."
}

type message struct {
	text        string
	attachments []string
}

// attached matches the worker's announcement of an attachment; the text of a file may follow.
var attached = regexp.MustCompile(`(?m)^\[Attached: (.*)\]$`)

func read(m openai.ChatCompletionMessage) message {
	var out message
	texts := []string{m.Content}
	for _, part := range m.MultiContent {
		if part.ImageURL != nil {
			out.attachments = append(out.attachments, describeImage(part.ImageURL.URL))
			continue
		}
		texts = append(texts, part.Text)
	}
	text := strings.Join(texts, "\n\n")
	marks := attached.FindAllStringSubmatchIndex(text, -1)
	end := len(text)
	if len(marks) > 0 {
		end = marks[0][0]
	}
	out.text = strings.TrimSpace(text[:end])
	for i, mark := range marks {
		next := len(text)
		if i+1 < len(marks) {
			next = marks[i+1][0]
		}
		out.attachments = append(out.attachments, describeFile(text[mark[2]:mark[3]], strings.TrimSpace(text[mark[1]:next])))
	}
	return out
}

func describeFile(name, content string) string {
	if content == "" {
		return name
	}
	return fmt.Sprintf("%s (text, %s)", name, bytes(len(content)))
}

func describeImage(url string) string {
	head, data, isData := strings.Cut(url, ";base64,")
	mediaType, hasType := strings.CutPrefix(head, "data:")
	if !isData || !hasType {
		return "an image at " + url
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Sprintf("an image (%s, damaged)", mediaType)
	}
	return fmt.Sprintf("an image (%s, %s)", mediaType, bytes(len(raw)))
}

func bytes(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

func quote(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxQuote {
		runes = append(runes[:maxQuote:maxQuote], '…')
	}
	return `"` + string(runes) + `"`
}

func quoteBehind(text string) string {
	if text == "" {
		return ", without a word"
	}
	return ": " + quote(text)
}

func quoteEnd(text string) string {
	const kept = 30
	runes := []rune(strings.TrimSpace(text))
	if len(runes) > kept {
		return `"…` + string(runes[len(runes)-kept:]) + `"`
	}
	return `"` + string(runes) + `"`
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func list(items []string) string {
	if len(items) == 1 {
		return items[0]
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
