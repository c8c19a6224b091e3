package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/internal/tracing"
	"github.com/seed-9ed7edd4/chronicle/internal/version"
)

// flagTrace is the name of a flag of commands that can print the id of their trace.
const flagTrace = "trace"

// Each input of these commands begins a trace, because they last as long as their user wants.
var lastingCommands = []string{"chat", "script", "events"}

// startTrace makes the spans of a command if OTEL_ variables or --trace ask for them. They continue
// the trace of TRACEPARENT (https://opentelemetry.io/docs/specs/otel/context/env-carriers/).
func (a *app) startTrace(command *cobra.Command) error {
	if command.Name() == "serve" {
		return nil // it exports metrics, too
	}
	isShown, _ := command.Flags().GetBool(flagTrace) // false without the flag
	exported, err := telemetry.Start(command.Context(), telemetry.Options{
		Service: "chronicle-starter", Version: version.Build(), Getenv: withoutMetrics, TraceIDs: isShown, OnError: a.noteExport,
	})
	if err != nil || exported.Tracers() == nil {
		return err
	}
	a.tracers = exported.Tracers()
	span := trace.SpanFromContext(command.Context())
	if !slices.Contains(lastingCommands, command.Name()) {
		var ctx context.Context
		ctx, span = tracing.StartRoot(tracing.WithTraceparent(command.Context(), os.Getenv("TRACEPARENT")),
			exported.Tracers(), trace.SpanKindClient, command.CommandPath(), "")
		command.SetContext(ctx)
	}
	if isShown {
		a.note("trace %s", span.SpanContext().TraceID())
	}
	a.endTrace = func(err error) {
		tracing.End(span, err)
		if err := exported.Close(); err != nil {
			a.noteExport(err)
		}
	}
	return nil
}

// withoutMetrics is a Getenv that disables the export of metrics: a command is too short for them.
func withoutMetrics(name string) string {
	if name == "OTEL_METRICS_EXPORTER" {
		return "none"
	}
	return os.Getenv(name)
}

func (a *app) noteExport(err error) {
	if !errors.Is(err, context.Canceled) {
		a.note("cannot export telemetry: %s", strings.TrimSpace(err.Error()))
	}
}
