// Package monitoring reads the Grafana dashboard and the Prometheus alerts in deploy, for tests.
package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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

// Use is a label that an expression uses of a metric.
type Use struct {
	Metric, Label string
	Value         string // that the label must or must not have; empty: the expression groups by it
}

var (
	selector = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)\s*`)
	grouped  = regexp.MustCompile(`\b(?:up|(?:chronicle|temporal|process|go)_\w+)`)
)

// Uses returns the labels that an expression uses, with the alternatives of regular expressions as values.
// A grouping must precede its operand in parentheses, as in "sum by (le) (...)".
func Uses(expr string) (uses []Use, err error) {
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			values := []string{m[3]}
			if strings.HasSuffix(m[2], "~") {
				values = strings.Split(m[3], "|")
			}
			for _, value := range values {
				uses = append(uses, Use{s[1], m[1], value})
			}
		}
	}
	for _, at := range grouping.FindAllStringSubmatchIndex(expr, -1) {
		operand, err := parenthesized(expr[at[1]:])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr[at[0]:], err)
		}
		for label := range strings.SplitSeq(expr[at[2]:at[3]], ",") {
			for _, metric := range grouped.FindAllString(operand, -1) {
				uses = append(uses, Use{Metric: metric, Label: strings.TrimSpace(label)})
			}
		}
	}
	return uses, nil
}

// parenthesized returns the part of a text up to the parenthesis that closes its first one.
func parenthesized(text string) (string, error) {
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			if i == 0 {
				break
			}
			return text[:i+1], nil
		}
	}
	return "", errors.New("want the operand in parentheses")
}
