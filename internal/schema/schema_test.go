package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/schema"
)

const person = `{"type":"object","required":["name"],"additionalProperties":false,
	"properties":{"name":{"type":"string","minLength":2},"age":{"type":"integer"},"friends":{"type":"array","items":{"$ref":"#"}}}}`

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"Ann"}`:                            "",
		` {"name":"Ann","age":7.0}` + "\n":          "",
		`{"name":"Ann","friends":[{"name":"Bob"}]}`: "",
		``:                         "not JSON: EOF",
		`Sure!`:                    "not JSON: invalid character 'S' looking for beginning of value",
		"```json\n{}\n```":         "not JSON: invalid character '`' looking for beginning of value",
		`{"name":"Ann"} {}`:        "not JSON: more text follows the JSON",
		`{"name":"Ann"`:            "not JSON: unexpected EOF",
		`[]`:                       "root: got array, want object",
		`{"name":"Ann","age":"7"}`: "/age: got string, want integer",
		`{"name":"Ann","friends":[{"name":"B"},{}]}`:  "/friends/0/name: minLength: got 1, want 2; /friends/1: missing property 'name'",
		`{"name":"Ann","age":1e1000000}`:              "a number is out of range (at most 400 digits, and an exponent of at most 400)",
		`{"name":"Ann","age":1e-1000000}`:             "a number is out of range (at most 400 digits, and an exponent of at most 400)",
		`{"name":"Ann","age":1e99999999999999999999}`: "a number is out of range (at most 400 digits, and an exponent of at most 400)",
	} {
		s, err := schema.Compile([]byte(person))
		require.NoError(t, err)
		for range 2 {
			err = s.Check(text)
			if want == "" {
				require.NoError(t, err, text)
			} else {
				require.EqualError(t, err, want, text)
			}
		}
	}
}

func TestReasonsAreFew(t *testing.T) {
	s, err := schema.Compile([]byte(`{"items":{"type":"string"}}`))
	require.NoError(t, err)
	require.EqualError(t, s.Check(`[1,2,3,4,5,6,7]`), "/0: got number, want string; /1: got number, want string; "+
		"/2: got number, want string; /3: got number, want string; /4: got number, want string; …")
}

func TestTheDepthOfASchemaIsLimited(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(strings.Repeat(`{"not":`, levels-1) + `{}` + strings.Repeat(`}`, levels-1))
	}
	_, err := schema.Compile(nested(100))
	require.NoError(t, err)
	_, err = schema.Compile(nested(101))
	require.EqualError(t, err, "nested more than 100 levels deep")
}

func TestInvalidSchemas(t *testing.T) {
	for source, want := range map[string]string{
		`{`:                              "not JSON",
		`{"type":"strin"}`:               "/type",
		`{"type":1}`:                     "/type",
		`{"pattern":"("}`:                "'(' is not valid regex",
		`{"$ref":"#/$defs/x"}`:           "#/$defs/x",
		`{"$ref":"https://example.com"}`: "references to other documents are not loaded",
		`{"$ref":"file:///etc/passwd"}`:  "references to other documents are not loaded",
		`{"$ref":"other.json"}`:          "references to other documents are not loaded",
		`{"$schema":"https://example.com/schema"}`: "references to other documents are not loaded",
		`{"minimum":1e1000000}`:                    "a number is out of range",
		`{"$ref":"#"}`:                             "root: the schema refers to itself without an end",
		`{"not":{"$ref":"#"}}`:                     "/not: the schema refers to itself without an end",
		`{"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/properties/a"}]}}}`: "/properties/a: the schema refers to itself without an end",
	} {
		_, err := schema.Compile([]byte(source))
		require.ErrorContains(t, err, want, source)
		require.ErrorAs(t, err, new(*schema.Fault), source)
		require.Equal(t, err.Error(), event.Redact(err.Error(), 0), "it contains nothing like a secret")
		require.NotContains(t, err.Error(), "schema:///#", source)
	}
}

func TestARecursiveSchemaIsValid(t *testing.T) {
	s, err := schema.Compile([]byte(`{"allOf":[{"$ref":"#/$defs/tree"},{"$ref":"#/$defs/tree"}],
		"$defs":{"tree":{"properties":{"left":{"$ref":"#"},"right":{"items":{"$ref":"#/$defs/tree"}}},"type":"object"}}}`))
	require.NoError(t, err)
	require.NoError(t, s.Check(`{"left":{"right":[{},{"left":{}}]}}`))
	require.Error(t, s.Check(`{"left":{"right":[{"left":1}]}}`))
}

func TestADynamicReferenceToItselfIsAFaultOfTheSchema(t *testing.T) {
	s, err := schema.Compile([]byte(`{"properties":{"a":{"$dynamicRef":"#/properties/a"}}}`))
	require.NoError(t, err)
	require.NoError(t, s.Check(`{}`))
	err = s.Check(`{"a":1}`)
	require.ErrorAs(t, err, new(*schema.Fault))
	require.ErrorContains(t, err, "a reference leads back to itself: /a: ")
}

func TestSchemasOfOtherDrafts(t *testing.T) {
	for draft, source := range map[string]string{
		"4":       `{"$schema":"http://json-schema.org/draft-04/schema#","definitions":{"n":{"type":"integer"}},"properties":{"x":{"$ref":"#/definitions/n"}}}`,
		"7":       `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"type":"integer","format":"email"}}}`,
		"2019-09": `{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"x":{"type":"integer"}}}`,
	} {
		s, err := schema.Compile([]byte(source))
		require.NoError(t, err, draft)
		require.NoError(t, s.Check(`{"x":1}`), draft)
		require.Error(t, s.Check(`{"x":"a"}`), draft)
	}
}

// Each definition applies the next one twice, so the cost doubles with each.
func TestValidationHasALimit(t *testing.T) {
	chain := func(first, keyword string) string {
		var defs []string
		for n := range 60 {
			defs = append(defs, fmt.Sprintf(`"a%d":{"%s":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%[3]d"}]}`, n, keyword, n+1))
		}
		return `{` + first + `,"$defs":{` + strings.Join(defs, ",") + `,"a60":{"maximum":0}}}`
	}
	for name, test := range map[string]struct{ schema, text string }{
		"anyOf": {chain(`"$ref":"#/$defs/a0"`, "anyOf"), `1`},
		"allOf": {chain(`"$ref":"#/$defs/a0"`, "allOf"), `0`},
		"oneOf": {chain(`"$ref":"#/$defs/a0"`, "oneOf"), `1`},
		"not":   {chain(`"not":{"$ref":"#/$defs/a0"}`, "anyOf"), `1`},
		"a reference to itself": {
			`{"anyOf":[{"properties":{"x":{"$ref":"#"}},"required":["y"]},{"properties":{"x":{"$ref":"#"}},"required":["y"]}]}`,
			strings.Repeat(`{"x":`, 60) + `1` + strings.Repeat(`}`, 60),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile([]byte(test.schema))
			require.NoError(t, err)
			s.Limit(10_000)
			err = s.Check(test.text)
			require.EqualError(t, err, "validation failed: the schema takes too many steps")
			require.ErrorAs(t, err, new(*schema.Fault))
		})
	}
}

func TestALongAnswerIsWithinTheLimit(t *testing.T) {
	s, err := schema.Compile([]byte(`{"items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer","minimum":0}}}`))
	require.NoError(t, err)
	require.NoError(t, s.Check(`[`+strings.Repeat("1,", 768<<9-1)+`1]`))
}

func TestIsObject(t *testing.T) {
	require.NoError(t, schema.IsObject(` {"a":1} `))
	require.EqualError(t, schema.IsObject(`[]`), "want a JSON object")
	require.ErrorContains(t, schema.IsObject(`{} x`), "not JSON")
}
