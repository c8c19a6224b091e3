package rig

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/seed-9ed7edd4/chronicle/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/internal/metrics"
	"github.com/seed-9ed7edd4/chronicle/internal/telemetry"
	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/stream"
	"github.com/seed-9ed7edd4/chronicle/worker/contexts"
)

// Metered is a worker and a gateway in this process. It records the calls that they and the Temporal SDK
// make to metrics, and repeats them to measure their cost.
type Metered struct {
	*System // only its url and its watcher
	tape    *tape
	stops   []func() error
}

// StartMetered starts a system that records the calls for metrics.
func (r *Rig) StartMetered(ctx context.Context, taskQueue string) (_ *Metered, err error) {
	m := &Metered{tape: &tape{}, System: &System{watcher: r.Contexts.watcher}}
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
	store, err := blobs.Open(ctx, r.addresses.Blobs, sdkclient.DefaultNamespace)
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, store.Close)
	meters := &tapedMeters{tape: m.tape, real: metrics.New(exported.Meters())}
	store.Measure(meters)
	deltas, err := stream.Connect(r.addresses.NATS, stream.Options{Name: taskQueue})
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, func() error { deltas.Close(); return nil })
	temporal, err := sdkclient.DialContext(ctx, sdkclient.Options{
		HostPort: r.addresses.Temporal, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ExternalStorage: blobs.ExternalStorage(store), MetricsHandler: tapedHandler{tape: m.tape, real: exported.TemporalMetrics()},
	})
	if err != nil {
		return nil, err
	}
	m.stops = append(m.stops, func() error { temporal.Close(); return nil })
	environment := map[string]string{"OPENAI_BASE_URL": r.addresses.Model, "OPENAI_MODEL": "scripted"}
	worker := contexts.NewWorker(temporal, contexts.Options{
		TaskQueue: taskQueue, Archive: archive.New(store), Stream: deltas, SearchAttributes: true, Meters: meters,
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
		served <- gateway.New(client, gateway.Options{Rate: -1, StreamsPerAddress: -1, Meters: meters}).Serve(serving, listener)
	}()
	m.stops = append(m.stops, func() error { end(); return <-served })
	return m, nil
}

// Stop stops the system.
func (m *Metered) Stop() error { return m.stop(0) }

func (m *Metered) stop(keep int) error {
	var errs []error
	for len(m.stops) > keep {
		last := len(m.stops) - 1
		errs = append(errs, m.stops[last]())
		m.stops = m.stops[:last]
	}
	return errors.Join(errs...)
}

// Record starts the recording.
func (m *Metered) Record() { m.tape.record(true) }

// EndRecording returns the number of recorded calls. It also stops the worker and the gateway, so that
// they do not disturb the measurement.
func (m *Metered) EndRecording() (calls int, err error) {
	calls = m.tape.record(false)
	return calls, m.stop(1) // the exporter runs on
}

// Repeat repeats the recorded calls and returns the processor time that they took. Other programs on the
// machine hardly affect it.
func (m *Metered) Repeat() (time.Duration, error) {
	runtime.GC() // not during the measurement
	before, err := ownCPU()
	if err != nil {
		return 0, err
	}
	for _, call := range m.tape.calls {
		call()
	}
	after, err := ownCPU()
	return after - before, err
}

// ownCPU is the processor time of this process. It is more precise than cpu.
func ownCPU() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}

// tape is a sequence of calls.
type tape struct {
	mu          sync.Mutex // guards the fields
	isRecording bool
	calls       []func()
}

// record starts or ends the recording and returns its length.
func (t *tape) record(on bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isRecording = on
	return len(t.calls)
}

func (t *tape) add(call func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isRecording {
		t.calls = append(t.calls, call)
	}
}

// tapedHandler records the calls of the Temporal SDK and forwards them.
type tapedHandler struct {
	tape *tape
	real sdkclient.MetricsHandler
}

func (h tapedHandler) WithTags(tags map[string]string) sdkclient.MetricsHandler {
	tags = maps.Clone(tags)
	h.tape.add(func() { h.real.WithTags(tags) })
	return tapedHandler{h.tape, h.real.WithTags(tags)}
}

func (h tapedHandler) Counter(name string) sdkclient.MetricsCounter {
	h.tape.add(func() { h.real.Counter(name) })
	return taped{tape: h.tape, counter: h.real.Counter(name)}
}

func (h tapedHandler) Gauge(name string) sdkclient.MetricsGauge {
	h.tape.add(func() { h.real.Gauge(name) })
	return taped{tape: h.tape, gauge: h.real.Gauge(name)}
}

func (h tapedHandler) Timer(name string) sdkclient.MetricsTimer {
	h.tape.add(func() { h.real.Timer(name) })
	return taped{tape: h.tape, timer: h.real.Timer(name)}
}

// taped is one of the instruments of the Temporal SDK.
type taped struct {
	tape    *tape
	counter sdkclient.MetricsCounter
	gauge   sdkclient.MetricsGauge
	timer   sdkclient.MetricsTimer
}

func (t taped) Inc(n int64) {
	t.tape.add(func() { t.counter.Inc(n) })
	t.counter.Inc(n)
}

func (t taped) Update(value float64) {
	t.tape.add(func() { t.gauge.Update(value) })
	t.gauge.Update(value)
}

func (t taped) Record(d time.Duration) {
	t.tape.add(func() { t.timer.Record(d) })
	t.timer.Record(d)
}

// tapedMeters records calls of the instruments of Chronicle. It records each as a call of an instrument of
// the same kind, for counters and histograms one with the maximum number of labels.
type tapedMeters struct {
	noop.MeterProvider
	tape *tape
	real *metrics.Metrics
}

func (p *tapedMeters) Meter(string, ...metric.MeterOption) metric.Meter {
	return tapedMeter{provider: p}
}

type tapedMeter struct {
	noop.Meter
	provider *tapedMeters
}

func (m tapedMeter) Float64Counter(string, ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	return tapedCounter{provider: m.provider}, nil
}

func (m tapedMeter) Float64UpDownCounter(string, ...metric.Float64UpDownCounterOption) (metric.Float64UpDownCounter, error) {
	return tapedGauge{provider: m.provider}, nil
}

func (m tapedMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return tapedHistogram{provider: m.provider}, nil
}

type tapedCounter struct {
	noop.Float64Counter
	provider *tapedMeters
}

func (c tapedCounter) Add(_ context.Context, amount float64, _ ...metric.AddOption) {
	c.provider.tape.add(func() { c.provider.real.Requests.Add(amount, "openai", "scripted", "completed") })
}

type tapedGauge struct {
	noop.Float64UpDownCounter
	provider *tapedMeters
}

func (g tapedGauge) Add(_ context.Context, amount float64, _ ...metric.AddOption) {
	g.provider.tape.add(func() { g.provider.real.Running.Add(amount) })
}

type tapedHistogram struct {
	noop.Float64Histogram
	provider *tapedMeters
}

func (h tapedHistogram) Record(_ context.Context, value float64, _ ...metric.RecordOption) {
	h.provider.tape.add(func() { h.provider.real.Duration.Observe(value, "openai", "scripted", "completed") })
}
