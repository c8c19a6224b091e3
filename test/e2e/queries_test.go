package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type alert struct{ Alert, Expr string }

var alertRule = regexp.MustCompile(`(?m)^ +- alert: (\w+)\n +expr: \|\n((?: {10}.*\n)+)`)

func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "alerts.yml"))
	require.NoError(t, err)
	for _, rule := range alertRule.FindAllStringSubmatch(string(data), -1) {
		alerts = append(alerts, alert{rule[1], rule[2]})
	}
	require.NotEmpty(t, alerts)
	require.Len(t, alerts, strings.Count(string(data), "alert:"))
	return alerts
}

// readQueries returns the expressions of the dashboard and the alerts by where they are.
func readQueries(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "dashboards", "chronicle.json"))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(data, &dashboard))
	queries := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries["panel "+p.Title+", "+target.LegendFormat] = target.Expr
		}
	}
	require.NotEmpty(t, queries)
	for _, a := range readAlerts(t) {
		queries["alert "+a.Alert] = a.Expr
	}
	return queries
}

var metricName = regexp.MustCompile(`\b(?:chronicle|temporal|process|go)_[a-z0-9_]+`)

// metricsIn returns the metrics of Chronicle, the Temporal SDK and the process in an expression.
func metricsIn(expr string) []string {
	found := metricName.FindAllString(expr, -1)
	slices.Sort(found)
	return slices.Compact(found)
}
