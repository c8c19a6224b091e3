package llm

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// A server may refuse a parameter that nobody set, such as stream_options, a second name of a parameter, a keyword of
// a tool's schema, or the roles of the messages. The attempt is then sent again as the error asks, and the adapter
// remembers what worked.

// lessons are such changes for one model at one URL: "-NAME" omits a parameter, or a field of
// provider state; "+NAME" is the name of the output limit, "max:NUMBER" its maximum; "schema:NAME" omits a keyword from schemas of tools; "template:RULE" is a rule of the
// chat template.
type lessons []string

const (
	limitLesson       = "max:"
	noSystemLesson    = "template:no system role"
	alternationLesson = "template:alternating roles"
)

// templateErrors match errors of chat templates, which vLLM, llama.cpp and Text Generation Inference evaluate.
var templateErrors = []struct {
	lesson  string
	message *regexp.Regexp
}{
	{noSystemLesson, regexp.MustCompile(`(?i)system (role|prompt|message)s? (is |are )?not supported|only user and assistant roles are supported`)},
	{alternationLesson, regexp.MustCompile(`(?i)roles must alternate`)},
}

// maxOutput returns MaxOutput, or the smaller limit of the model that was learned.
func (t *Target) maxOutput() int {
	for _, limit := range t.lessons.named(limitLesson) {
		if n, err := strconv.Atoi(limit); err == nil {
			return min(t.MaxOutput, n)
		}
	}
	return t.MaxOutput
}

// maxLessons bounds the changes of one request, and so how often it is sent.
const maxLessons = 8

func (l lessons) has(lesson string) bool { return slices.Contains(l, lesson) }

// named returns the names in the lessons that begin with a prefix.
func (l lessons) named(prefix string) (names []string) {
	for _, lesson := range l {
		if name, ok := strings.CutPrefix(lesson, prefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// requestQuirks returns the kinds of quirks of a request.
func (t *Target) requestQuirks(messages []reducer.Message) []string {
	var quirks quirkSet
	for prefix, kind := range map[string]string{"-": quirkDropped, "+": quirkRenamed, limitLesson: quirkLowered, "schema:": quirkKeyword, "template:": quirkAdapted} {
		if len(t.lessons.named(prefix)) > 0 {
			quirks.add(kind)
		}
	}
	if slices.ContainsFunc(messages, func(m reducer.Message) bool { return len(m.Refused) > 0 }) {
		quirks.add(quirkRefused)
	}
	return quirks.list()
}

// learned applies the lessons that have a quirk.
func (q quirks) learned(l lessons) quirks {
	q.noStreamOptions = q.noStreamOptions || l.has("-"+parameterStreamOptions)
	q.tools.noChoice = q.tools.noChoice || l.has("-"+parameterToolChoice)
	q.noSystem = q.noSystem || l.has(noSystemLesson)
	q.alternate = q.alternate || l.has(noSystemLesson) || l.has(alternationLesson)
	return q
}

// experience remembers the lessons of models that answered a request.
type experience struct {
	mu    sync.Mutex
	known map[destination]lessons
}

type destination struct{ baseURL, model string }

const maxDestinations = 1000

func (e *experience) of(d destination) lessons {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[d]
}

func (e *experience) remember(d destination, l lessons) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.known) >= maxDestinations {
		for other := range e.known {
			delete(e.known, other)
			break
		}
	}
	if e.known == nil {
		e.known = map[destination]lessons{}
	}
	e.known[d] = l
}

// settingOf names the flag of "starter set request" for each parameter that only a setting adds.
var settingOf = map[string]string{
	parameterTemperature: "temperature", parameterMaxTokens: "max-tokens", parameterMaxCompletion: "max-tokens", parameterTopP: "top-p",
	parameterStop: "stop", parameterSeed: "seed", parameterRandomSeed: "seed", parameterFrequencyPenalty: "frequency-penalty",
	parameterPresencePenalty: "presence-penalty", parameterReasoningEffort: "reasoning-effort", parameterToolChoice: "tool-choice",
	parameterParallelToolCalls: "parallel-tool-calls", parameterResponseFormat: "response-schema",
}

// learn returns what to change after an error that names a parameter or a rule of the chat template; "" for nothing,
// since the error names none, the change was already made, or a setting asks for the parameter. The latter adds
// advice to the error.
func (t *Target) learn(e *Error) string {
	if rule := e.refusal.template; rule != "" {
		return t.ifNew(rule)
	}
	name, isRefused := e.refusal.parameter, e.refusal.refusesName
	if name == "" || e.Kind != KindBadRequest && !(e.Kind == KindServer && isRefused) {
		return ""
	}
	s := t.settings()
	isExtra := s.Extra.Fields()[name] != nil
	if lesson, isKeyword := strings.CutPrefix(name, "schema:"); isKeyword {
		return t.ifNew("schema:" + lesson)
	}
	switch {
	case isExtra:
	case name == parameterMaxTokens, name == parameterMaxCompletion:
		if other := otherLimit[name]; isRefused && len(t.lessons.named("+")) == 0 {
			return t.ifNew("+" + other)
		} else if isRefused && s.MaxTokens == nil {
			return t.ifNew("-" + name)
		} else if s.MaxTokens == nil {
			if e.refusal.limit > 0 && t.maxOutput() > e.refusal.limit {
				return limitLesson + strconv.Itoa(e.refusal.limit)
			}
			return "" // the limit is that of a budget
		}
	case name == parameterToolChoice && (s.ToolChoice == nil || s.ToolChoice.Name != "" || s.ToolChoice.Mode == toolChoiceRequired):
	case settingOf[name] == "" || name == parameterToolChoice:
		return t.ifNew("-" + name)
	}
	setting := "--" + settingOf[name]
	if isExtra {
		setting = "--extra"
	}
	if setting != "--" {
		e.Message += " (" + name + " comes from the settings: change it with starter set request " + setting + ")"
	}
	return ""
}

var otherLimit = map[string]string{parameterMaxTokens: parameterMaxCompletion, parameterMaxCompletion: parameterMaxTokens}

func (t *Target) ifNew(lesson string) string {
	if t.lessons.has(lesson) {
		return ""
	}
	return lesson
}

// refusesName matches messages that refuse a parameter whatever its value.
var refusesName = regexp.MustCompile(`(?i)unsupported|not (supported|permitted|allowed|recogni[sz]ed|accepted|valid|available)|unknown|unrecogni[sz]ed|` +
	`unexpected|extra[_ ](inputs|fields|forbidden)|forbidden|deprecated|instead|(does not|doesn't|cannot|can't) (support|accept|allow|take)|` +
	`invalid (parameter|argument|field|name|property|keyword)|no such|only the default`)

// namedParameter returns the first parameter of the request that an error names: in its field param, in the path of a
// validation error, or in its message. A name that is an English word must be quoted, or follow a word like parameter.
func (t *Target) namedParameter(body errorBody) string {
	names := t.parameterNames()
	path := strings.FieldsFunc(body.param, func(r rune) bool { return strings.ContainsRune(".[]/'\" ", r) })
	for _, step := range slices.Backward(path) {
		if slices.Contains(names, step) {
			return step
		}
	}
	first, at := "", len(body.message)
	for _, name := range names {
		word := regexp.QuoteMeta(name)
		pattern := "(?:['\"`]|^|body[./ ]|(?i:parameter|argument|field|name|key|keyword|option|supplied|property)s?:? )['\"`]?" + word + "(?:$|[^A-Za-z0-9_])"
		if strings.ContainsAny(name, "_$") || strings.ToLower(name) != name {
			pattern = `(?:^|[^A-Za-z0-9_$])` + word + `(?:$|[^A-Za-z0-9_])`
		}
		if match := regexp.MustCompile(pattern).FindStringIndex(body.message); match != nil && match[0] < at {
			first, at = name, match[0]
		}
	}
	if first != "" || !t.offersTools() || !toolNames.MatchString(body.message) && !schemaNames.MatchString(body.message) {
		return first
	}
	for _, keyword := range t.keywords() {
		if regexp.MustCompile("(?:['\"` ]|^)" + regexp.QuoteMeta(keyword) + "(?:$|[^A-Za-z0-9_])").MatchString(body.message) {
			return "schema:" + keyword
		}
	}
	return ""
}

// essential are parameters without which there is no request.
var essential = []string{parameterModel, parameterStream, parameterTools}

// parameterNames returns the parameters of the request, and the fields of provider state, that it can do without.
func (t *Target) parameterNames() []string {
	var names []string
	if fields, err := t.fields(); err == nil {
		for name := range fields {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(essential, name) })
	names = append(names, stateFields...)
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return names
}

// keywords returns the keywords of the schemas of the offered tools that can be omitted.
func (t *Target) keywords() (found []string) {
	var walk func(json.RawMessage)
	walk = func(schema json.RawMessage) {
		for _, f := range fieldsOf(schema) {
			switch f.name {
			case "properties", "$defs", "definitions", "patternProperties":
				for _, property := range fieldsOf(f.value) {
					walk(property.value)
				}
			case "type", "items", "required", "description":
			default:
				if !slices.Contains(found, f.name) {
					found = append(found, f.name)
				}
			}
			walk(f.value)
			for element := range valueOf(f.value).elements() {
				walk(json.RawMessage(element))
			}
		}
	}
	for _, tool := range t.Tools {
		walk(t.quirks.tools.parameters(tool.Parameters, t.lessons.named("schema:")))
	}
	return found
}
