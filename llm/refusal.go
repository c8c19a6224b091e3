package llm

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// refusal is what the response to a rejected request names.
type refusal struct {
	contents    []reducer.Suspect // in the order of contentNames
	isFinal     bool              // the model does not support the content, whatever the status
	parameter   string            // of the request, or "schema:" and a keyword of a tool's schema; "": none
	refusesName bool              // the server refuses the parameter whatever its value
	template    string            // the lesson about the chat template; "": none
	limit       int               // the largest number in the message below the output limit that was sent; 0: none
}

// contentNames match names of content in errors. The tests cite messages of providers.
var contentNames = []struct {
	content event.Content
	names   *regexp.Regexp
}{
	{event.ContentImages, regexp.MustCompile(`(?i)\b(images?|image_url|vision|multi-?modal|pictures?|photos?|png|jpe?g|webp|gif)\b`)},
	{event.ContentPDFs, regexp.MustCompile(`(?i)\b(pdfs?|files?|file_data|documents?|document_url)\b`)},
	{event.ContentAudio, regexp.MustCompile(`(?i)\b(audio(\(s\))?|input_audio|sounds?|wav|mp3)(\b|$)`)},
	{event.ContentState, regexp.MustCompile(`(?i)signature|encrypted|\bthinking\b|reasoning`)},
	{event.ContentCalls, regexp.MustCompile(`(?i)tool[_ ]?(calls?|use|results?|call_ids?|messages?)\b|function[_ ](calls?|responses?)\b|\brole\W{1,3}(tool|function)\b`)},
}

var (
	toolNames   = regexp.MustCompile(`(?i)\btools?\b|\bfunctions?\b`)
	schemaNames = regexp.MustCompile(`(?i)function_declarations?|schemas?\b|\bparameters\b.{0,40}(type|propert|object)`)
	unsupported = regexp.MustCompile(`(?i)(not|n't|no endpoints found that) (currently )?(support|accept|allow)|unsupported|missing data required|at most 0 |not a (multi-?modal|vision) model`)
	numbers     = regexp.MustCompile(`\d+`)
	toolIndex   = regexp.MustCompile(`\btools(?:\.|\[)(\d+)`)
)

// refusalIn reads the body of an error.
func (t *Target) refusalIn(body errorBody) refusal {
	r := refusal{
		isFinal: unsupported.MatchString(body.message), parameter: t.namedParameter(body),
		refusesName: refusesName.MatchString(body.message + " " + body.code + " " + body.typ),
	}
	for _, digits := range numbers.FindAllString(body.message, -1) {
		if n, err := strconv.Atoi(digits); err == nil && n < t.MaxOutput {
			r.limit = max(r.limit, n)
		}
	}
	for _, known := range templateErrors {
		if known.message.MatchString(body.message) {
			r.template = known.lesson
		}
	}
	for _, named := range contentNames {
		if named.names.MatchString(body.message) {
			r.contents = append(r.contents, reducer.Suspect{Content: named.content})
		}
	}
	switch {
	case !t.offersTools():
	case noTools.MatchString(body.message):
		r.contents = append([]reducer.Suspect{{Content: event.ContentTools}}, r.contents...)
		r.isFinal = true
	case schemaNames.MatchString(body.message):
		r.contents = append(t.namedTools(body.message), r.contents...)
	case toolNames.MatchString(body.message):
		r.contents = append(r.contents, t.namedTools(body.message)...)
	}
	return r
}

// namedTools suspects the schema of the tool that a message names, then the tool, then all schemas and tools.
func (t *Target) namedTools(message string) (suspects []reducer.Suspect) {
	for i, tool := range t.Tools {
		name := t.quirks.tools.toolName(tool.Name)
		index := toolIndex.FindStringSubmatch(message)
		isNamed := regexp.MustCompile(`(^|[^A-Za-z0-9_-])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9_-])`).MatchString(message)
		if isNamed || index != nil && string(encoded(i)) == index[1] {
			suspects = append(suspects, reducer.Suspect{Content: event.ContentSchemas, Tool: tool.Name}, reducer.Suspect{Content: event.ContentTools, Tool: tool.Name})
		}
	}
	return append(suspects, reducer.Suspect{Content: event.ContentSchemas}, reducer.Suspect{Content: event.ContentTools})
}

// suspect sets what of a request the provider may have refused: what the error names, and then, unless the error names
// a parameter, what else a request of this kind contains. Without a reason, a server error is suspicious only if no answer
// follows the newest image or file, and a request that is too large only if most of it is images and files.
func (t *Target) suspect(e *Error, sent conversation, messages []reducer.Message) {
	var present []event.Content
	for _, content := range []struct {
		is  bool
		all event.Content
	}{
		{t.sendsState(messages), event.ContentState},
		{sent.media.has(event.MediaImage), event.ContentImages},
		{sent.media.has(event.MediaPDF), event.ContentPDFs},
		{sent.media.has(event.MediaAudio), event.ContentAudio},
		{slices.ContainsFunc(messages, func(m reducer.Message) bool { return len(m.ToolCalls) > 0 }), event.ContentCalls},
		{t.offersTools(), event.ContentSchemas},
		{t.offersTools(), event.ContentTools},
	} {
		if content.is {
			present = append(present, content.all)
		}
	}
	add := func(s reducer.Suspect) {
		if slices.Contains(present, s.Content) && !slices.Contains(e.Suspects, s) {
			e.Suspects = append(e.Suspects, s)
		}
	}
	for _, named := range e.refusal.contents {
		if !e.mayRefuse(named.Content) {
			continue
		}
		add(named)
		if isMedia(named.Content) && !slices.Contains(present, named.Content) {
			for _, content := range present { // some servers call a PDF an image
				if isMedia(content) {
					add(reducer.Suspect{Content: content})
				}
			}
		}
	}
	if e.Kind == KindServer && len(e.Suspects) > 0 && e.refusal.isFinal {
		e.Kind = KindBadRequest
	}
	isUnexplained := e.Kind == KindBadRequest && e.Status >= 400 && e.refusal.parameter == ""
	isUnexplainedFailure := e.Status == http.StatusInternalServerError && e.Kind == KindServer && !sent.isSeen
	size := 0
	for _, m := range sent.messages {
		size += len(m.json)
	}
	isTooLarge := e.Status == http.StatusRequestEntityTooLarge && e.Window == 0 && 2*sent.mediaBytes > size
	for _, content := range present {
		if isUnexplained || (isUnexplainedFailure || isTooLarge) && isMedia(content) {
			add(reducer.Suspect{Content: content})
		}
	}
}

func isMedia(c event.Content) bool {
	return c == event.ContentImages || c == event.ContentPDFs || c == event.ContentAudio
}

// mayRefuse reports whether the error can be about content that it names. Only media can be too large or filtered alone:
// the texts of the other errors also name tools and calls.
func (e *Error) mayRefuse(content event.Content) bool {
	switch e.Kind {
	case KindBadRequest:
		return true
	case KindNotFound:
		return e.refusal.isFinal
	case KindServer:
		return e.refusal.isFinal || e.Status == http.StatusInternalServerError
	case KindContentFilter:
		return isMedia(content)
	case KindContextTooLong:
		return isMedia(content) && e.Window == 0
	}
	return false
}

// validationErrors returns the paths and messages of [{"loc":["body","seed"],"msg":"…"}], as servers in Python
// report invalid fields; "" for any other value. It omits the invalid values.
func validationErrors(detail value) string {
	var texts []string
	for problem := range detail.elements() {
		var path []string
		for step := range problem.field("loc").elements() {
			path = append(path, plain(step))
		}
		if message := plain(problem.field("msg")); message != "" {
			texts = append(texts, strings.TrimPrefix(strings.Join(path, ".")+": "+message, ": "))
		}
	}
	return strings.Join(texts, "; ")
}
