package rig

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnObservationIsReportedOnce(t *testing.T) {
	var out bytes.Buffer
	s := &self{out: json.NewEncoder(&out)}
	s.report(Observation{Kind: Ended, Key: "m1"})
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\n")), "%s", &out)
}
