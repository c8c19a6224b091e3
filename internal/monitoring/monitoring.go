// Package monitoring reads the Grafana dashboard and the Prometheus alerts in deploy, for tests.
package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Paths in the repository.
const (
	DashboardFile = "deploy/grafana/dashboards/chronicle.json"
	AlertsFile    = "deploy/prometheus/alerts.yml"
)

// Panel is a panel of the dashboard; a row has the type "row" and no queries.
type Panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	Targets                  []struct{ Expr, LegendFormat string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	GridPos                  struct{ X, Y, W, H int }
}

// Dashboard is the part of a Grafana dashboard that tests read.
type Dashboard struct {
	UID, Title string
	Panels     []Panel
}

// ReadDashboard reads DashboardFile below a folder, the root of the repository.
func ReadDashboard(root string) (d Dashboard, err error) {
	data, err := os.ReadFile(filepath.Join(root, DashboardFile))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(data, &d)
}

// Alert is a Prometheus alert rule.
type Alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// ReadAlerts reads AlertsFile below a folder, the root of the repository.
func ReadAlerts(root string) (alerts []Alert, err error) {
	data, err := os.ReadFile(filepath.Join(root, AlertsFile))
	if err != nil {
		return nil, err
	}
	var file struct{ Groups []struct{ Rules []Alert } }
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	for _, g := range file.Groups {
		alerts = append(alerts, g.Rules...)
	}
	return alerts, nil
}

// ReadQueries returns the expressions of the dashboard and the alerts by where they are.
func ReadQueries(root string) (map[string]string, error) {
	dashboard, err := ReadDashboard(root)
	if err != nil {
		return nil, err
	}
	alerts, err := ReadAlerts(root)
	if err != nil {
		return nil, err
	}
	queries := map[string]string{}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries["panel "+p.Title+", "+target.LegendFormat] = target.Expr
		}
	}
	for _, a := range alerts {
		queries["alert "+a.Alert] = a.Expr
	}
	return queries, nil
}

var names = regexp.MustCompile(`\b(?:chronicle|temporal|process|go)_[a-z0-9_]+`)

// Names returns the metrics of Chronicle, the Temporal SDK and the process in an expression.
func Names(expr string) []string {
	found := names.FindAllString(expr, -1)
	slices.Sort(found)
	return slices.Compact(found)
}
