package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

type metric struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Unit string  `json:"unit"`
	N    int     `json:"n"`
}

type report struct {
	Date    string            `json:"date"`
	Machine string            `json:"machine"`
	Metrics map[string]metric `json:"metrics"`
	// Telemetry are comparisons with and without metrics and traces.
	Telemetry map[string]comparison `json:"telemetry,omitempty"`
	order     []string              // metric names in insertion order
}

func newReport() *report {
	return &report{Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Metrics: map[string]metric{}, Telemetry: map[string]comparison{}}
}

func (r *report) add(name, unit string, s samples) {
	r.order = append(r.order, name)
	r.Metrics[name] = metric{P50: s.quantile(0.5), P95: s.quantile(0.95), Unit: unit, N: len(s)}
}

func (r *report) compare(name string, c comparison) { r.Telemetry[name] = c }

// write writes the report as JSON; it does nothing if path is "".
func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}

func readReport(path string) (*report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the run to compare with: %w", err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read the run to compare with: %s: %w", path, err)
	}
	return &r, nil
}

func (r *report) print(out io.Writer, baseline string) error {
	before := &report{}
	if baseline != "" {
		var err error
		if before, err = readReport(baseline); err != nil {
			fmt.Fprintf(out, "no comparison: %v\n\n", err)
			before = &report{}
		}
	}
	fmt.Fprintln(out, r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "metric\tp50\tp95\tunit\tn\tsince %s\tx reference\tx reference since then\n", cmp.Or(before.Date, "(no run)"))
	for _, name := range r.order {
		m := r.Metrics[name]
		ratio := ""
		if x := r.ratio(name); x != 0 {
			ratio = fmt.Sprintf("%.2f", x)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", name, number(m.P50), number(m.P95), m.Unit, m.N,
			change(before.Metrics[name].P50, m.P50), ratio, change(before.ratio(name), r.ratio(name)))
	}
	fmt.Fprintf(table, "\ntarget\tmeasured\tat\tbound\t\n")
	for _, t := range targets {
		if row, ok := t.row(r.Metrics); ok {
			fmt.Fprintln(table, row)
		}
	}
	if len(r.Telemetry) > 0 {
		fmt.Fprintf(table, "\nmetrics and traces\toff\ton\tunit\trounds\tratio\t95 %% interval\tbound\t\n")
	}
	for _, row := range telemetryRows {
		if c, ok := r.Telemetry[row.name]; ok {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%.3f\t%.3f to %.3f\t%s\n", row.name, number(c.Off), number(c.On), c.Unit, c.Rounds, c.Ratio, c.Low, c.High, row.verdict(c))
		}
	}
	return table.Flush()
}

// ratio divides the median of a metric by that of its reference. The result hardly depends on the speed of
// the machine. 0: a median is missing.
func (r *report) ratio(name string) float64 {
	reference := r.Metrics[references[name]].P50
	if reference == 0 {
		return 0
	}
	return r.Metrics[name].P50 / reference
}

// change is "" if a figure is missing.
func change(before, now float64) string {
	if before == 0 || now == 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f %%", 100*(now/before-1))
}

func number(f float64) string {
	switch {
	case f >= 100 || f <= -100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10 || f <= -10:
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
