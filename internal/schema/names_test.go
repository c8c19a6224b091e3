package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/schema"
)

func TestNamesOfDeclaredFieldsHaveOneSpelling(t *testing.T) {
	for _, test := range []struct{ schema, text, want string }{
		{`{"properties":{"a":{}}}`, `{"a":1,"b":2}`, ""},
		{`{"properties":{"a":{}}}`, `{"a":1,"A":2}`, "/A: unknown field (want a)"},
		{`{"properties":{"a":{},"A":{}}}`, `{"a":1,"A":2}`, ""},
		{`{"oneOf":[{"properties":{"id":{}}},{"required":["ID"]}]}`, `{"ID":1}`, ""},
		{`{"oneOf":[{"properties":{"id":{}}},{"required":["ID"]}]}`, `{"Id":1}`, "/Id: unknown field (want id)"},
		{`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"properties":{"d":{}}}}}`, `{"D":1}`, "/D: unknown field (want d)"},
		{`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"properties":{"d":{}}}}}`, `{"B":1}`, "/B: unknown field (want b)"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]},"items":[{"required":["x"]}]}`, `[{"X":1}]`, "/0/X: unknown field (want x)"},
		{`{"patternProperties":{"^p":{"properties":{"a":{}}}},"additionalProperties":{"properties":{"b":{}}}}`, `{"p1":{"A":1}}`, "/p1/A: unknown field (want a)"},
		{`{"patternProperties":{"^p":{"properties":{"a":{}}}},"additionalProperties":{"properties":{"b":{}}}}`, `{"q":{"A":1}}`, ""},
		{`{"properties":{"a":{},"children":{"prefixItems":[{}],"items":{"$ref":"#"}}}}`, `{"children":[{"children":[0,{"A":1}]}]}`, "/children/0/children/1/A: unknown field (want a)"},
		{`{"$dynamicAnchor":"t","properties":{"a":{},"next":{"$dynamicRef":"#t"}}}`, `{"next":{"next":{"A":1}}}`, "/next/next/A: unknown field (want a)"},
		{`{"if":{"required":["a"]},"not":{"required":["b"]}}`, `{"A":1}`, "/A: unknown field (want a)"},
		{`{"required":["stress"]}`, `{"ſtreſs":1}`, "/ſtreſs: unknown field (want stress)"},
		{`{"properties":{"a":{}}}`, `{"x":{"A":1}}`, ""},
		{`{}`, `[1,"A",null]`, ""},
	} {
		s, err := schema.Compile([]byte(test.schema))
		require.NoError(t, err)
		if err = s.CheckNames(test.text); test.want == "" {
			require.NoError(t, err, test)
		} else {
			require.EqualError(t, err, test.want, test)
		}
	}
}

func TestTheCheckOfNamesHasALimit(t *testing.T) {
	s, err := schema.Compile([]byte(`{"items":{"allOf":[{"type":"integer"},{"minimum":0}]}}`))
	require.NoError(t, err)
	s.Limit(1000)
	require.ErrorAs(t, s.CheckNames(`[`+strings.Repeat("1,", 1000)+`1]`), new(*schema.Fault))
}
