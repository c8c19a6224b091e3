package devserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		output  string
		want    string
		fine    bool
		wantErr string
	}{
		{name: "a release is fine", output: "temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)\n", want: "1.29.1", fine: true},
		{name: "a build from source is fine", output: "temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)", want: "1.29.1", fine: true},
		{name: "the oldest fine server", output: "temporal version 1.5.0 (Server 1.29.0, UI 2.41.0)", want: "1.29.0", fine: true},
		{name: "a newer server is fine", output: "temporal version 1.9.0 (Server 1.31.0-151.2, UI 2.50.0)", want: "1.31.0", fine: true},
		{name: "numbers are not compared as text", output: "temporal version 2.0.0 (Server 1.100.0, UI 3.0.0)", want: "1.100.0", fine: true},
		{name: "an older server is not", output: "temporal version 1.4.0 (Server 1.28.9, UI 2.39.0)", want: "1.28.9"},
		{name: "another major version is not", output: "temporal version 3.0.0 (Server 2.0.0, UI 3.0.0)", want: "2.0.0"},
		{name: "another program of that name is an error", output: "tctl version 1.18", wantErr: `no "(Server X.Y.Z" in "tctl version 1.18"`},
		{name: "nothing is an error", output: "", wantErr: `no "(Server X.Y.Z" in ""`},
		{name: "an absurd number is an error", output: "(Server 1.99999999999999999999.0)", wantErr: "value out of range"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			version, err := devserver.ParseVersion(tt.output)
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, version.String())
			require.Equal(t, tt.fine, version.Fine())
		})
	}
}
