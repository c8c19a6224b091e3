package rig

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// Metered is a worker and a gateway in this process, with metrics and without traces.
type Metered struct {
	*System // without processes
	stops   []func() error
}

// StartMetered starts a system with metrics in this process.
func (r *Rig) StartMetered(ctx context.Context, taskQueue string) (_ *Metered, err error) {
	m := &Metered{System: &System{watcher: r.Contexts.watcher}}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Stop())
		}
	}()
	exported, err := telemetry.Start(ctx, telemetry.Options{Service: "bench", Listen: "127.0.0.1:0", Getenv: func(string) string { return "" }})
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, exported.Close)
	m.metrics = []string{"http://" + exported.Address() + "/metrics"}
	store, err := blobs.Open(ctx, r.addresses.Blobs, sdkclient.DefaultNamespace)
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, store.Close)
	store.Measure(exported.Meters())
	deltas, err := stream.Connect(r.addresses.NATS, stream.Options{Name: taskQueue})
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, func() error { deltas.Close(); return nil })
	temporal, err := sdkclient.DialContext(ctx, contexts.WithStore(sdkclient.Options{
		HostPort: r.addresses.Temporal, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		MetricsHandler: exported.TemporalMetrics(),
	}, store))
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, func() error { temporal.Close(); return nil })
	environment := map[string]string{"OPENAI_BASE_URL": r.addresses.Model, "OPENAI_MODEL": "scripted"}
	worker := contexts.NewWorker(temporal, contexts.Options{
		TaskQueue: taskQueue, Archive: archive.New(store), Stream: deltas, SearchAttributes: true, Meters: exported.Meters(),
		Models: llm.New(llm.Options{Defaults: llm.DefaultsFromEnv(func(name string) string { return environment[name] })}),
	})
	if err := worker.Start(); err != nil {
		return nil, err
	}
	m.stops = append(m.stops, func() error { worker.Stop(); return nil })
	client, err := r.Dial(ctx, taskQueue)
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, func() error { client.Shutdown(); return nil })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.url = "http://" + listener.Addr().String()
	serving, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- gateway.New(client, gateway.Options{Rate: -1, StreamsPerAddress: -1, Meters: exported.Meters()}).Serve(serving, listener)
	}()
	m.stops = append(m.stops, func() error { end(); return <-served })
	return m, nil
}

// Stop stops the system.
func (m *Metered) Stop() error {
	var errs []error
	for _, stop := range slices.Backward(m.stops) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// MetricsCPU returns the processor time of this process that was spent on metrics during run, from a CPU profile, and the
// number of its samples in functions of metrics. The encoding of scrapes is not included.
func (m *Metered) MetricsCPU(run func() error) (used time.Duration, samples int64, err error) {
	var encoded bytes.Buffer
	if err := pprof.StartCPUProfile(&encoded); err != nil {
		return 0, 0, err
	}
	err = run()
	pprof.StopCPUProfile()
	if err != nil {
		return 0, 0, err
	}
	parsed, err := profile.Parse(&encoded)
	if err != nil {
		return 0, 0, err
	}
	samples, used = metricsCPU(parsed)
	return used, samples, nil
}

// metricsPackages are the prefixes of the functions that record metrics.
var metricsPackages = []string{
	"github.com/seed-9ed7edd4/chronicle/internal/metrics.", "github.com/seed-9ed7edd4/chronicle/internal/telemetry.",
	"go.opentelemetry.io/otel/metric.", "go.opentelemetry.io/otel/sdk/metric", "go.temporal.io/sdk/contrib/opentelemetry.MetricsHandler",
}

// metricsCPU sums the samples of a CPU profile with a function of metricsPackages on the stack.
func metricsCPU(p *profile.Profile) (samples int64, used time.Duration) {
	for _, s := range p.Sample {
		if slices.ContainsFunc(s.Location, isOfMetrics) {
			samples, used = samples+s.Value[0], used+time.Duration(s.Value[1])
		}
	}
	return samples, used
}

func isOfMetrics(l *profile.Location) bool {
	return slices.ContainsFunc(l.Line, func(line profile.Line) bool {
		return slices.ContainsFunc(metricsPackages, func(prefix string) bool { return strings.HasPrefix(line.Function.Name, prefix) })
	})
}
