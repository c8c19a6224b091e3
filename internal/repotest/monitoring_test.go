package repotest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/monitoring"
	"github.com/seed-9ed7edd4/chronicle/reducer"
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

// targetLabels are those that Prometheus adds to each series.
var targetLabels = []string{"job", "instance"}

// temporalLabels are the labels of the metrics of the Temporal SDK, without those of all of them.
var temporalLabels = map[string][]string{
	"temporal_request_total":                                          {"operation"},
	"temporal_request_failure_total":                                  {"operation"},
	"temporal_request_latency_seconds_bucket":                         {"operation", "le"},
	"temporal_workflow_task_schedule_to_start_latency_seconds_bucket": {"workflow_type", "task_queue", "le"},
	"temporal_activity_schedule_to_start_latency_seconds_bucket":      {"workflow_type", "activity_type", "task_queue", "le"},
}

// labelValues are the values of labels that the code chooses.
func labelValues() map[string][]string {
	outcomes := []string{
		string(reducer.Completed), string(reducer.Interrupted), string(reducer.Failed), string(reducer.TooLong),
		string(event.AttemptToolCalls), string(event.AttemptHandedBack), string(event.AttemptLost),
	}
	kinds := make([]string, len(event.FailureKinds()))
	for i, k := range event.FailureKinds() {
		kinds[i] = string(k)
	}
	return map[string][]string{
		"up job":                                   {"worker", "gateway"},
		"chronicle_requests_total outcome":         outcomes,
		"chronicle_failures_total kind":            kinds,
		"chronicle_tokens_total kind":              {"input", "cached", "output", "reasoning"},
		"chronicle_tool_calls_total outcome":       {"ok", "error", "failed"},
		"chronicle_hook_calls_total outcome":       {"passed", "changed", "refused", "failed"},
		"chronicle_store_operations_total outcome": {"ok", "missing", "exists", "failed"},
		"chronicle_budgets_exceeded_total budget":  {"context", "label"},
	}
}

func labelsOf(metric string) (labels []string, isKnown bool) {
	if strings.HasPrefix(metric, "process_") || strings.HasPrefix(metric, "go_") || metric == "up" {
		return nil, true
	}
	if labels, isKnown = temporalLabels[metric]; isKnown {
		return append([]string{"namespace", "client_name"}, labels...), true
	}
	base, isBucket := strings.CutSuffix(metric, "_bucket")
	for _, d := range metrics.New(nil).Definitions() {
		if d.PrometheusName() == base {
			labels = slices.Clone(d.Labels)
			if isBucket {
				labels = append(labels, "le")
			}
			return labels, true
		}
	}
	return nil, false
}

var inTemplate = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)

// PromQL accepts any label, and finds nothing.
func TestTheDashboardAndTheAlertsUseKnownLabels(t *testing.T) {
	queries, err := monitoring.ReadQueries(".")
	require.NoError(t, err)
	known, checked := labelValues(), 0
	for where, expr := range queries {
		uses, err := monitoring.Uses(expr)
		require.NoError(t, err, where)
		for _, use := range uses {
			labels, isKnown := labelsOf(use.Metric)
			if !assert.True(t, isKnown, "%s: no metric %s", where, use.Metric) ||
				!assert.Contains(t, append(labels, targetLabels...), use.Label, "%s: label of %s", where, use.Metric) || use.Value == "" {
				continue
			}
			checked++
			assert.Contains(t, known[use.Metric+" "+use.Label], use.Value, "%s: %s of %s", where, use.Label, use.Metric)
		}
	}
	require.NotZero(t, checked)
}

func TestLegendsAndSummariesUseLabelsOfTheResult(t *testing.T) {
	require.Equal(t, []string{"{{ $labels.model }}", "model"}, inTemplate.FindStringSubmatch("of {{ $labels.model }} at"))
	require.Nil(t, inTemplate.FindStringSubmatch("{{ $value }} of"), "not a label")
	check := func(where, template, expr string) {
		uses, err := monitoring.Uses(expr)
		require.NoError(t, err)
		kept := slices.Clone(targetLabels) // if nothing is aggregated
		if strings.Contains(expr, " by (") || strings.Contains(expr, "sum(") {
			kept = nil
			for _, use := range uses {
				if use.Value == "" {
					kept = append(kept, use.Label)
				}
			}
		}
		for _, match := range inTemplate.FindAllStringSubmatch(template, -1) {
			assert.Contains(t, kept, match[1], "%s: %s", where, template)
		}
	}
	dashboard, err := monitoring.ReadDashboard(".")
	require.NoError(t, err)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.LegendFormat, target.Expr)
		}
	}
	alerts, err := monitoring.ReadAlerts(".")
	require.NoError(t, err)
	for _, a := range alerts {
		check(a.Alert, a.Annotations["summary"], a.Expr)
	}
}
