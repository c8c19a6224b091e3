package agui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func TestFieldsThatARunDoesNotHaveAreRejected(t *testing.T) {
	for field, body := range map[string]string{
		"config":          `"config":{"model":"x"}`,
		"MESSAGES":        `"MESSAGES":[]`,
		"protocolVersion": `"protocolVersion":"2.0"`,
		"parentRunId":     `"parentRunId":"r0"`,
		"state":           `"state":{"a":1}`,
	} {
		_, err := decode([]byte(`{"threadId":"demo","runId":"r1",` + body + `}`))
		var p *gateway.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, field, p.Field)
	}
	for _, version := range []string{`null`, `"1.0"`, `"1.3"`} {
		_, err := decode([]byte(`{"threadId":"demo","runId":"r1","protocolVersion":` + version + `,"forwardedProps":{"model":"x"},"extension":null}`))
		require.NoError(t, err)
	}
}
