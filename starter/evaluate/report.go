package evaluate

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
)

// Report compares answers. Its JSON is the machine-readable report.
type Report struct {
	Settings  Settings `json:"settings"`
	Measure   Measure  `json:"measure"`
	Contexts  int      `json:"contexts"`
	Recorded  Sum      `json:"recorded"`
	Baseline  Sum      `json:"baseline"`
	Candidate Sum      `json:"candidate"`
	Questions []Row    `json:"questions,omitempty"`
}

// Sum is the sum over the answers of a variant.
type Sum struct {
	Answers int `json:"answers"` // without an error
	Failed  int `json:"failed"`
	// The mean agreement with the recorded answers, from 0 to 1; a failed answer counts as 0.
	Agreement    float64 `json:"agreement"`
	InputTokens  int     `json:"inputTokens"`
	OutputTokens int     `json:"outputTokens"`
	CostMicros   int64   `json:"costMicros"` // of the answers whose price is known, in millionths of a dollar
	Unpriced     int     `json:"unpriced"`   // answers whose price is unknown
	DurationMs   int64   `json:"durationMs"`
}

// Row is a question with the answers of both variants.
type Row struct {
	Question
	Baseline  Compared `json:"baseline"`
	Candidate Compared `json:"candidate"`
}

// Compared is an answer and its agreement with the recorded one.
type Compared struct {
	client.Evaluated
	Agreement float64 `json:"agreement"`
}

// NewReport compares the results with the recorded answers. A result that is missing counts as failed.
func NewReport(settings Settings, measure Measure, questions []Question, results *Results) Report {
	report := Report{Settings: settings, Measure: measure}
	contexts := map[string]bool{}
	for _, q := range questions {
		compare := func(v Variant) Compared {
			answer := results.Get(q, v)
			if answer.Model == "" && answer.ProviderID == "" && answer.Error == "" {
				answer.Error = "not asked"
			}
			return Compared{answer, measure.Agreement(q.Recorded, answer)}
		}
		row := Row{q, compare(Baseline), compare(Candidate)}
		report.Questions = append(report.Questions, row)
		report.Recorded.add(q.Recorded, 1)
		report.Baseline.add(row.Baseline.Evaluated, row.Baseline.Agreement)
		report.Candidate.add(row.Candidate.Evaluated, row.Candidate.Agreement)
		contexts[q.ContextName] = true
	}
	report.Contexts = len(contexts)
	for _, sum := range []*Sum{&report.Recorded, &report.Baseline, &report.Candidate} {
		sum.Agreement /= float64(max(1, len(questions)))
	}
	return report
}

func (s *Sum) add(answer client.Evaluated, agreement float64) {
	if answer.Error != "" {
		s.Failed++
	} else {
		s.Answers++
	}
	s.Agreement += agreement
	s.InputTokens += answer.InputTokens
	s.OutputTokens += answer.OutputTokens
	s.DurationMs += answer.DurationMs
	switch {
	case answer.CostMicros != nil:
		s.CostMicros += *answer.CostMicros
	case answer.Error == "":
		s.Unpriced++
	}
}

// FirstError returns why the first answer is missing; "" if none is.
func (r Report) FirstError() string {
	for _, row := range r.Questions {
		if problem := cmp.Or(row.Baseline.Error, row.Candidate.Error); problem != "" {
			return problem
		}
	}
	return ""
}

// Percent formats an agreement like 87%. It rounds down, so that 100% means that all agree.
func Percent(agreement float64) string { return fmt.Sprintf("%d%%", int(billionths(agreement)/1e7)) }

// Decimal formats an agreement like 0.874. It rounds down, so that it does not show a minimum that was not reached.
func Decimal(agreement float64) string {
	return fmt.Sprintf("%.3f", math.Floor(billionths(agreement)/1e6)/1e3)
}

// Below reports whether an agreement is below a minimum by more than the error of a sum.
func Below(agreement, minimum float64) bool { return billionths(agreement) < billionths(minimum) }

func billionths(agreement float64) float64 { return math.Round(agreement * 1e9) }

// Cost formats the sum of the known prices; "unknown" if none is.
func (s Sum) Cost() string {
	switch {
	case s.Unpriced > 0 && s.CostMicros == 0:
		return "unknown"
	case s.Unpriced > 0:
		return event.FormatCost(s.CostMicros) + "+"
	}
	return event.FormatCost(s.CostMicros)
}

// Time formats the sum of the durations.
func (s Sum) Time() string {
	return (time.Duration(s.DurationMs) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// Name describes the settings: "openai gpt-4o-mini with another system prompt".
func (s Settings) Name() string {
	name := "the recorded model"
	if s.Provider != nil {
		name = s.Provider.ProviderID + " " + s.Provider.Model
	}
	if s.System != nil {
		name += " with another system prompt"
	}
	return name
}

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": Percent,
	"changed": Changed,
	"differs": func(r Row) bool { return r.Candidate.Agreement < 1 },
}).Parse(page))

// WriteHTML writes the report as a page without scripts and external files.
func (r Report) WriteHTML(w io.Writer) error { return pageTemplate.Execute(w, r) }

// WriteJSON writes the report as an indented object.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
