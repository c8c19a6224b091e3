package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// samples are the measurements of one metric, in its unit.
type samples []float64

func (s *samples) add(durations ...time.Duration) {
	for _, d := range durations {
		*s = append(*s, float64(d)/float64(time.Millisecond))
	}
}

// quantile returns the smallest sample that is at least as large as the given share of them; 0 without samples.
func (s samples) quantile(share float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// metric is a row of the report.
type metric struct {
	Name string  `json:"name"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Unit string  `json:"unit"`
	N    int     `json:"n"`
	// Ratio is P50 by that of the reference. It hardly depends on the speed of the machine. 0: no reference.
	Ratio float64 `json:"ratio,omitempty"`
	// Bounds are the targets, and whether they are met.
	Bounds []string `json:"bounds,omitempty"`
	// Note explains the metric.
	Note string `json:"note,omitempty"`
}

type report struct {
	Date    string    `json:"date"`
	Machine string    `json:"machine"`
	Server  string    `json:"server"`
	Metrics []*metric `json:"metrics"`
}

const (
	tunedServer = "tuned"
	stockServer = "stock"
)

func newReport(stock bool) *report {
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Server: tunedServer}
	if stock {
		r.Server = stockServer
	}
	return r
}

func (r *report) add(name, unit string, s samples) *metric {
	m := &metric{Name: name, P50: s.quantile(0.5), P95: s.quantile(0.95), Unit: unit, N: len(s)}
	r.Metrics = append(r.Metrics, m)
	return m
}

// addRatio adds the ratios of pairs of samples, with their quartiles.
func (r *report) addRatio(name string, of, by samples) {
	var ratios samples
	for i := range of {
		ratios = append(ratios, of[i]/by[i])
	}
	r.add(name, "x", ratios).Note = fmt.Sprintf("quartiles %s to %s", number(ratios.quantile(0.25)), number(ratios.quantile(0.75)))
}

func (r *report) find(name string) *metric {
	for _, m := range r.Metrics {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// judge sets the ratios and the bounds.
func (r *report) judge() {
	for name, of := range references {
		if m, reference := r.find(name), r.find(of); m != nil && reference != nil && reference.P50 != 0 {
			m.Ratio = m.P50 / reference.P50
		}
	}
	for _, m := range r.Metrics {
		m.Bounds = nil
		for _, t := range targets {
			if t.metric == m.Name && (t.stock == (r.Server == stockServer) || t.always) {
				if bound := t.judge(m, r.find(t.of)); bound != "" {
					m.Bounds = append(m.Bounds, bound)
				}
			}
		}
	}
}

func (r *report) print(out io.Writer) error {
	r.judge()
	fmt.Fprintf(out, "%s, %s, %s Temporal server\n", r.Date, r.Machine, r.Server)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "metric\tp50\tp95\tunit\tn\tx reference\ttargets")
	for _, m := range r.Metrics {
		ratio := ""
		if m.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f", m.Ratio)
		}
		remarks := m.Bounds
		if m.Note != "" {
			remarks = append(slices.Clone(remarks), m.Note)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", m.Name, number(m.P50), number(m.P95), m.Unit, m.N, ratio, strings.Join(remarks, "; "))
	}
	return table.Flush()
}

// write writes the report as JSON; it does nothing if path is "".
func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func number(f float64) string {
	switch abs := math.Abs(f); {
	case f == math.Trunc(f) || abs >= 100:
		return fmt.Sprintf("%.0f", f)
	case abs >= 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}

func machine() string {
	model := "unknown processor"
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d x %s, %s/%s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
