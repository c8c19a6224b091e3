package chat

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// Messages are block quotes, whose content is rendered as Markdown (CommonMark). Tool calls and
// results are fenced code blocks. Content cannot break out of either.
//
// Files follow their message: images and other files as data URLs, texts as code blocks.
func writeMarkdown(w *bufio.Writer, log iter.Seq2[event.Event, error], blobs Blobs) error {
	c, err := conversationOf(log)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "# %s\n", c.contextName)
	for _, m := range c.messages {
		if m.Attachments, err = resolved(m, blobs); err != nil {
			return err
		}
		writeMessage(w, m, c.reasoning[m.EventID])
	}
	return nil // bufio.Writer reports write errors on Flush
}

var headings = map[reducer.Role]string{
	reducer.RoleSystem:    "System",
	reducer.RoleUser:      "User",
	reducer.RoleAssistant: "Assistant",
	reducer.RoleTool:      "Tool",
}

func writeMessage(w io.Writer, m reducer.Message, reasoning string) {
	heading := headings[m.Role]
	if m.Partial {
		heading += " (partial)"
	}
	fmt.Fprintf(w, "\n## %s\n", heading)
	if m.Role == reducer.RoleTool {
		fmt.Fprintf(w, "\nResult of %s:\n", codeSpan(m.ToolCallID))
		writeCode(w, "", m.Content)
		return
	}
	if strings.TrimSpace(reasoning) != "" {
		fmt.Fprintf(w, "\n### Reasoning\n")
		writeQuote(w, reasoning)
		fmt.Fprintf(w, "\n### Answer\n")
	}
	writeQuote(w, m.Content)
	for i, a := range m.Attachments {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "- Attached: %s%s\n", codeSpan(describe(a)), embedded(a))
	}
	for _, a := range m.Attachments {
		if text, isNote := textOf(a); !isNote {
			fmt.Fprintf(w, "\nContent of %s:\n", codeSpan(nameOf(a)))
			writeCode(w, "", strings.TrimPrefix(text, head(a)+"\n"))
		}
	}
	for _, call := range m.ToolCalls {
		fmt.Fprintf(w, "\nCalls %s as %s:\n", codeSpan(call.Name), codeSpan(call.ID))
		writeCode(w, "json", indented(cmp.Or(call.Arguments, noArguments)))
	}
}

// embedded returns an image or a link with the bytes of a file; "" for text and for a file without bytes.
func embedded(a reducer.Attachment) string {
	data := bytesOf(a.Source)
	switch media := event.MediaOf(a.MediaType); {
	case len(data) == 0, media == event.MediaText && utf8.Valid(data):
		return ""
	case media == event.MediaImage:
		return " ![image](" + dataURL(a.MediaType, data) + ")"
	default:
		return " [file](" + dataURL(a.MediaType, data) + ")"
	}
}

func describe(a reducer.Attachment) string {
	text := nameOf(a) + ", " + a.MediaType
	if a.Size > 0 {
		text += fmt.Sprintf(", %d bytes", a.Size)
	}
	return text
}

func indented(arguments string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(arguments), "", "  ") != nil {
		return arguments
	}
	return out.String()
}

func writeQuote(w io.Writer, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	fmt.Fprintln(w)
	for line := range strings.SplitSeq(printable(text), "\n") {
		if line != "" {
			line = " " + line
		}
		fmt.Fprintln(w, ">"+line)
	}
}

// writeCode writes a code block with a fence longer than any in the text.
func writeCode(w io.Writer, language, text string) {
	text = strings.TrimSuffix(printable(text), "\n")
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	fmt.Fprintf(w, "\n%s%s\n%s\n%s\n", fence, language, text, fence)
}

func codeSpan(text string) string {
	text = strings.Join(strings.Fields(printable(text)), " ")
	fence := strings.Repeat("`", longestRun(text)+1)
	if text == "" || strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

func longestRun(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

func printable(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
