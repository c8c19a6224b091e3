package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type alert struct{ Alert, Expr string }

func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "alerts.yml"))
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []alert } }
	require.NoError(t, yaml.Unmarshal(data, &file))
	for _, g := range file.Groups {
		alerts = append(alerts, g.Rules...)
	}
	require.NotEmpty(t, alerts)
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
