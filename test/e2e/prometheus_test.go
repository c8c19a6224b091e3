package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The URL of the Prometheus server of the topology; `make e2e-postgres` sets it.
const prometheusVariable = "CHRONICLE_E2E_PROMETHEUS"

// askPrometheus decodes the data of an answer of its HTTP API.
func askPrometheus[T any](t *testing.T, path string, query url.Values) (data T) {
	t.Helper()
	server := os.Getenv(prometheusVariable)
	require.NotEmpty(t, server, prometheusVariable)
	response, err := http.Get(server + "/api/v1/" + path + "?" + query.Encode())
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          T
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(t, "success", answer.Status, "%s: %s", query, answer.Error)
	return answer.Data
}

func TestPrometheusScrapesTheTopology(t *testing.T) {
	topologyOnly(t)
	type found struct {
		ActiveTargets []struct{ ScrapePool, Health, LastError string }
	}
	require.Eventually(t, func() bool {
		up := map[string]int{}
		for _, target := range askPrometheus[found](t, "targets", nil).ActiveTargets {
			if target.Health == "up" {
				up[target.ScrapePool]++
			}
		}
		return up["worker"] == 2 && up["gateway"] == 1
	}, testTimeout, 100*time.Millisecond)
}

func TestPrometheusAcceptsTheAlertsAndTheDashboard(t *testing.T) {
	topologyOnly(t)
	type loaded struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	alerts := readAlerts(t)
	require.Eventually(t, func() bool {
		healthy := 0
		for _, group := range askPrometheus[loaded](t, "rules", nil).Groups {
			for _, rule := range group.Rules {
				require.NotEqual(t, "err", rule.Health, "%s: %s", rule.Name, rule.LastError)
				if rule.Health == "ok" {
					healthy++
				}
			}
		}
		return healthy == len(alerts)
	}, testTimeout, 100*time.Millisecond, "each rule is evaluated")
	queries := readQueries(t)
	for _, expr := range queries { // a rejected query fails; TestPrometheusHasTheMetricsOfAConversation checks results
		askPrometheus[json.RawMessage](t, "query", url.Values{"query": {strings.ReplaceAll(expr, "$__rate_interval", "1m")}})
	}
}
