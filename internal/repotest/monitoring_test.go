package repotest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/monitoring"
)

func TestEachAlertHasARunbook(t *testing.T) {
	alerts, err := monitoring.ReadAlerts(".")
	require.NoError(t, err)
	require.NotEmpty(t, alerts)
	operations := read(t, "docs/operations.md")
	var documented []string
	for _, match := range regexp.MustCompile(`(?m)^#### (Chronicle\w+)$`).FindAllStringSubmatch(operations, -1) {
		documented = append(documented, match[1])
	}
	var names []string
	for _, a := range alerts {
		names = append(names, a.Alert)
		assert.NotEmpty(t, a.Annotations["summary"], a.Alert)
		assert.Contains(t, []string{"warning", "critical"}, a.Labels["severity"], a.Alert)
		assert.Equal(t, "https://"+module+"/blob/main/docs/operations.md#"+strings.ToLower(a.Alert), a.Annotations["runbook_url"])
	}
	require.Equal(t, names, documented, "docs/operations.md has a paragraph for each alert, in the same order")
}

func TestThePanelsOfTheDashboardExplainThemselves(t *testing.T) {
	dashboard, err := monitoring.ReadDashboard(".")
	require.NoError(t, err)
	ids, occupied := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		assert.False(t, ids[p.ID], "%s: the id %d is taken", p.Title, p.ID)
		ids[p.ID] = true
		assert.NotEmpty(t, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Empty(t, occupied[[2]int{x, y}], "%s: overlaps", p.Title)
				occupied[[2]int{x, y}] = p.Title
			}
		}
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			continue
		}
		assert.NotEmpty(t, p.Description, p.Title)
		assert.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		assert.Contains(t, read(t, "deploy/grafana/datasources.yml"), "uid: "+p.Datasource.UID+"\n", p.Title)
		for _, target := range p.Targets {
			assert.NotEmpty(t, target.LegendFormat, p.Title)
		}
	}
}

func TestTheDashboardShowsEachMetric(t *testing.T) {
	queries, err := monitoring.ReadQueries(".")
	require.NoError(t, err)
	var used []string
	for _, expr := range queries {
		used = append(used, monitoring.Names(expr)...)
	}
	for _, d := range metrics.New(nil).Definitions() {
		assert.Regexp(t, `\b`+d.PrometheusName()+`(_bucket)?\b`, strings.Join(used, " "))
	}
}

var increase = regexp.MustCompile(`increase\(([^\[]+)\[(\w+)\]\)`)

// A counter with labels appears with its first event. Prometheus sees no increase until the second.
func TestAlertsFireAtTheFirstEvent(t *testing.T) {
	alerts, err := monitoring.ReadAlerts(".")
	require.NoError(t, err)
	found := 0
	for _, a := range alerts {
		for _, match := range increase.FindAllStringSubmatch(a.Expr, -1) {
			found++
			counter, window := match[1], match[2]
			require.Contains(t, a.Expr, "("+counter+" unless "+counter+" offset "+window+") > 0", a.Alert)
		}
	}
	require.NotZero(t, found)
}
