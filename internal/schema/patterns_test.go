package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/schema"
)

func TestPatternsOfOtherLanguagesAreNotChecked(t *testing.T) {
	for _, test := range []struct{ schema, text, want string }{
		{`{"type":"string","pattern":"^(?!admin)"}`, `"admin"`, ""},
		{`{"type":"string","pattern":"^(?!admin)"}`, `1`, "root: got number, want string"},
		{`{"type":"string","pattern":"^[a-z]+$"}`, `"A"`, "root: 'A' does not match pattern '^[a-z]+$'"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","pattern":"(a)\\1"}`, `"ab"`, ""},
		{`{"patternProperties":{"^(?=x)":{"type":"string"}},"additionalProperties":false}`, `{"y":1}`, ""},
		{`{"patternProperties":{"^(?=x)":{},"^y":{"type":"string"}}}`, `{"y":1}`, "/y: got number, want string"},
		{`{"not":{"pattern":"^(?!x)"}}`, `"a"`, ""},
		{`{"oneOf":[{"pattern":"^(?!x)"},{"pattern":"^x"}]}`, `"x"`, ""},
		{`{"oneOf":[{"type":"string","pattern":"^(?!x)"},{"type":"null"}]}`, `1`, "root: got number, want null; root: got number, want string"},
		{`{"not":{"pattern":"^x"}}`, `"x"`, "root: 'not' failed"},
	} {
		s, err := schema.CompileParameters([]byte(test.schema))
		require.NoError(t, err, test)
		if err = s.Check(test.text); test.want == "" {
			require.NoError(t, err, test)
		} else {
			require.EqualError(t, err, test.want, test)
		}
	}
}

func TestPatternsOfRulesMustBeChecked(t *testing.T) {
	_, err := schema.Compile([]byte(`{"pattern":"^(?!admin)"}`))
	require.ErrorAs(t, err, new(*schema.Fault))
}
