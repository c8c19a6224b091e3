package repotest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
)

const (
	dashboardFile = "deploy/grafana/dashboards/chronicle.json"
	alertsFile    = "deploy/prometheus/alerts.yml"
)

func TestDocumentationHasARunbookForEachAlert(t *testing.T) {
	operations := read(t, "docs/operations.md")
	for _, alert := range found(t, `alert: (Chronicle\w+)$`, alertsFile) {
		assert.Contains(t, operations, "\n#### "+alert[1]+"\n")
		assert.Contains(t, read(t, alertsFile), "/docs/operations.md#"+strings.ToLower(alert[1])+"\n")
	}
}

// PromQL accepts any name and any label, and finds nothing.
func TestTheDashboardAndTheAlertsNameMetricsThatExist(t *testing.T) {
	known := map[string][]string{}
	for _, d := range metrics.New(nil).Definitions() {
		known[d.PrometheusName()] = d.Labels
		assert.Contains(t, read(t, dashboardFile), d.PrometheusName(), "the dashboard shows each metric")
	}
	for _, file := range []string{dashboardFile, alertsFile} {
		for _, name := range found(t, `\b(chronicle_[a-z_]+?)(?:_bucket)?\b(\{[^}]*\})?`, file) {
			labels, ok := known[name[1]]
			require.True(t, ok, "%s: no metric %s", file, name[1])
			for _, label := range regexp.MustCompile(`(\w+)\s*[!=]~?\s*\\?"`).FindAllStringSubmatch(name[2], -1) {
				assert.Contains(t, append(labels, "job", "instance"), label[1], "%s: label of %s", file, name[1])
			}
		}
	}
}
