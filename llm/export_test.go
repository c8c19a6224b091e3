package llm

import (
	"encoding/json"
	"strings"
)

// Accepts returns the kinds of media that are sent as content parts, separated by spaces.
func (t *Target) Accepts() string {
	var names []string
	for _, name := range []string{"image", "pdf", "audio"} {
		if t.quirks.accepts.has(partMedia[name]) && !t.quirks.textOnly {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// Remember adds a lesson of a model.
func (a *Adapter) Remember(baseURL, model, lesson string) {
	a.experience.remember(destination{baseURL, model}, lessons{lesson})
}

// Remembered returns the number of models with lessons.
func (a *Adapter) Remembered() int { return len(a.experience.known) }

// DecodeJSON returns valid JSON as encoding/json does, with texts for numbers; nil for other data.
func DecodeJSON(data []byte) any { return decoded(valueOf(data)) }

func decoded(v value) any {
	switch v.kind() {
	case '{':
		fields := map[string]any{}
		for name, field := range v.fields() {
			fields[repaired(string(name), new(quirkSet))] = decoded(field)
		}
		return fields
	case '[':
		elements := []any{}
		for element := range v.elements() {
			elements = append(elements, decoded(element))
		}
		return elements
	case '"':
		return repaired(v.text(), new(quirkSet))
	case 'n':
		return nil
	case 't', 'f':
		return v.text() == "true"
	}
	return json.Number(v.text())
}
