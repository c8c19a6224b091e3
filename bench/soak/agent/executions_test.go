package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARejectedExecutionReportsTheResponse(t *testing.T) {
	recorder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no JSON", http.StatusBadRequest)
	}))
	defer recorder.Close()
	_, err := begin(t.Context(), recorder.URL, Execution{})
	require.EqualError(t, err, "record the execution: 400 Bad Request: no JSON")
}
