package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/schema"
)

// question is what a call of a client's tool asks the user.
type question struct {
	text string
	// schema is the JSON Schema of the result; nil: any text.
	schema json.RawMessage
	// choices are the values that the schema lists, or that the call suggests; nil: none.
	choices []json.RawMessage
	types   []string
}

var (
	textNames   = []string{"question", "prompt", "message", "text"}
	schemaNames = []string{"requestedSchema", "responseSchema", "schema"}
	answerNames = []string{"answer", "result", "response"}
)

// newQuestion reads the question from the arguments of a call. A schema of the result is an argument
// like "requestedSchema". Otherwise, an argument that is a list of texts suggests answers, or the schema
// of the tool describes the result as a property like "answer".
func newQuestion(tool string, parameters event.Object, arguments json.RawMessage) question {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(arguments, &given)
	var q question
	take := func(names []string, accept func(json.RawMessage) bool) {
		for _, name := range names {
			if value, ok := given[name]; ok && accept(value) {
				delete(given, name)
				return
			}
		}
	}
	take(textNames, func(value json.RawMessage) bool { return json.Unmarshal(value, &q.text) == nil && q.text != "" })
	take(schemaNames, q.setSchema)
	if q.schema == nil {
		take(slices.Sorted(maps.Keys(given)), q.setSuggestions)
	}
	if q.schema == nil && q.choices == nil {
		var declared struct{ Properties map[string]json.RawMessage }
		_ = json.Unmarshal(parameters, &declared)
		for _, name := range answerNames {
			if q.setSchema(declared.Properties[name]) {
				break
			}
		}
	}
	if q.text == "" {
		q.text = tool
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		q.text += "\n" + name + ": " + resultText(given[name])
	}
	return q
}

func (q *question) setSuggestions(list json.RawMessage) bool {
	var texts []string
	if json.Unmarshal(list, &texts) != nil || len(texts) == 0 {
		return false
	}
	return json.Unmarshal(list, &q.choices) == nil
}

// setSchema returns false for JSON that is not a schema with a type or an enumeration.
func (q *question) setSchema(source json.RawMessage) bool {
	var declared struct {
		Type json.RawMessage
		Enum []json.RawMessage
	}
	if json.Unmarshal(source, &declared) != nil {
		return false
	}
	var one string
	var types []string
	if json.Unmarshal(declared.Type, &one) == nil {
		types = []string{one}
	} else {
		_ = json.Unmarshal(declared.Type, &types)
	}
	if len(types) == 0 && len(declared.Enum) == 0 {
		return false
	}
	if _, err := schema.Compile(source); err != nil {
		return false
	}
	q.schema, q.types, q.choices = source, types, declared.Enum
	return true
}

// lines returns the text and the numbered choices.
func (q question) lines() string {
	var b strings.Builder
	b.WriteString(q.text)
	for i, choice := range q.choices {
		fmt.Fprintf(&b, "\n  %d. %s", i+1, resultText(choice))
	}
	return b.String()
}

// hint describes what to type.
func (q question) hint() string {
	switch {
	case q.schema == nil && len(q.choices) > 0:
		return "a number or text"
	case len(q.choices) > 0:
		return "a number or a choice"
	case q.schema == nil:
		return "text"
	}
	var hints []string
	for _, t := range q.types {
		hint, ok := map[string]string{
			"string": "text", "boolean": "yes or no", "integer": "a whole number", "number": "a number", "null": "null",
		}[t]
		if !ok {
			hint = "JSON"
		}
		hints = append(hints, hint)
	}
	return strings.Join(hints, " or ")
}

// result converts a line to a value that the schema accepts.
func (q question) result(line string) (json.RawMessage, error) {
	if line == "" {
		return nil, errors.New("no answer (type " + q.hint() + ", or /deny)")
	}
	value, ok := q.convert(line)
	if !ok {
		return nil, errors.New("not " + q.hint())
	}
	if q.schema == nil {
		return value, nil
	}
	compiled, err := schema.Compile(q.schema)
	if err != nil {
		return nil, err
	}
	if err := compiled.Check(string(value)); err != nil {
		return nil, fmt.Errorf("not accepted: %w", err)
	}
	return value, nil
}

func (q question) convert(line string) (value json.RawMessage, ok bool) {
	if len(q.choices) > 0 {
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.choices) {
			return q.choices[n-1], true
		}
		i := slices.IndexFunc(q.choices, func(c json.RawMessage) bool { return strings.EqualFold(resultText(c), line) })
		if i >= 0 {
			return q.choices[i], true
		}
		if q.schema != nil {
			return nil, false
		}
	}
	text, _ := json.Marshal(line)
	if q.schema == nil {
		return text, true
	}
	isText := slices.Contains(q.types, "string")
	if slices.Contains(q.types, "boolean") {
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			return json.RawMessage("true"), true
		case "n", "no", "false":
			return json.RawMessage("false"), true
		}
	}
	// A text that looks like JSON remains a text, unless the schema accepts other types, too.
	if (!isText || len(q.types) > 1) && json.Valid([]byte(line)) {
		return json.RawMessage(line), true
	}
	return text, isText
}
