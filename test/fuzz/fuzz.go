package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// fuzz is what all contexts share.
type fuzz struct {
	*rig.Rig
	options         options
	dir             string
	worker, gateway *rig.Process
	model           *model
	server          *httptest.Server // of MCP
	nats            *nats.Conn
	http            *http.Client
	note            note
	done, failed    atomic.Int64 // contexts
}

// secrets of the worker: the keys of the default provider and of the MCP server. No log may contain them.
var secrets = []string{"fuzz-key-0b8f4c6a1d73e952", "fuzz-token-57d1e0a2c49b8f36"}

const providers = `[[budgets]]
label = "team"
tokens_per_day = 100000000
`

func run(ctx context.Context, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	f := &fuzz{options: o, http: &http.Client{Timeout: doorTimeout}}
	defer f.http.CloseIdleConnections()
	if err := f.start(ctx); err != nil {
		return err
	}
	defer f.stop()
	fmt.Printf("-seed %d: %d contexts at a time with %d steps, for %v\n", o.seed, o.parallel, o.steps, o.duration)
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(f.watch(watched)) }()

	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range o.parallel {
		wg.Go(func() {
			for watched.Err() == nil {
				n := int(next.Add(1) - 1)
				if o.context >= 0 {
					if n > 0 {
						return
					}
					n = o.context
				}
				if n >= o.parallel && time.Since(began) >= o.duration {
					return
				}
				if err := f.runTarget(watched, n); err != nil {
					f.failed.Add(1)
					fmt.Println(err)
				} else {
					f.done.Add(1)
				}
			}
		})
	}
	reporting, stopReporting := context.WithCancel(ctx)
	defer stopReporting()
	go func() {
		for pause.For(reporting, reportEvery) {
			fmt.Println(f.line(time.Since(began)))
		}
	}()
	wg.Wait()
	fmt.Println(f.line(time.Since(began)))
	if watched.Err() != nil {
		return context.Cause(watched)
	}
	var failed error
	if n := f.failed.Load(); n > 0 {
		failed = fmt.Errorf("%d contexts failed the checks", n)
	}
	return errors.Join(failed, f.checkMemory(), f.model.problem(), checkLogs(f.options.logs))
}

const (
	doorTimeout = 15 * time.Second // of a step
	reportEvery = 30 * time.Second
)

func (f *fuzz) start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if f.dir, err = os.MkdirTemp("", "chronicle-fuzz-"); err != nil {
		return err
	}
	f.options.logs = cmp.Or(f.options.logs, f.dir)
	f.model, f.server = startModel(), startServer()
	if f.Rig, err = rig.Start(ctx, rig.Options{Seed: f.options.seed, LogDir: f.options.logs}); err != nil {
		return err
	}
	budgets, servers := filepath.Join(f.dir, "providers.toml"), filepath.Join(f.dir, "mcp.json")
	config := fmt.Sprintf(`{"mcpServers":{"evil":{"url":%q,"headers":{"Authorization":"Bearer env:FUZZ_TOKEN"},"timeoutMs":%d}}}`, f.server.URL, serverTimeout.Milliseconds())
	if err := errors.Join(os.WriteFile(budgets, []byte(providers), 0o600), os.WriteFile(servers, []byte(config), 0o600)); err != nil {
		return err
	}
	worker := f.Command("worker", "--continue-as-new-after", "150", "--drain-timeout", "1s",
		"--providers", budgets, "--mcp", servers, "--allow-base-url", f.model.url, "--cached-contexts", "20")
	worker.Env = append(worker.Env, "OPENAI_BASE_URL="+f.model.url, "OPENAI_MODEL=hostile", "OPENAI_API_KEY="+secrets[0], "FUZZ_TOKEN="+secrets[1], memoryLimit)
	if f.worker, err = f.Launch(ctx, worker); err != nil {
		return err
	}
	gateway := f.GatewayCommand()
	gateway.Env = append(gateway.Env, memoryLimit)
	if f.gateway, err = f.Launch(ctx, gateway); err != nil {
		return err
	}
	f.nats, err = nats.Connect(f.NATSURL(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // nats prints errors
	return err
}

const (
	taskQueue = wire.TaskQueue
	mib       = 1 << 20
	// maxMemory is the limit of the peak of the resident size of the worker, and of that of the gateway.
	maxMemory = 1024 * mib
	// memoryLimit makes the garbage collector of a process run more often, before it exceeds maxMemory.
	memoryLimit = "GOMEMLIMIT=512MiB"
)

func (f *fuzz) stop() {
	if f.nats != nil {
		f.nats.Close()
	}
	_, _ = f.gateway.Stop(), f.worker.Stop()
	for _, server := range []*httptest.Server{f.model.server, f.server} {
		server.CloseClientConnections()
		server.Close()
	}
	if f.Rig != nil {
		f.Rig.Stop()
	}
	_ = os.RemoveAll(f.dir)
}

// watch returns why a process failed, or nil when ctx ends.
func (f *fuzz) watch(ctx context.Context) error {
	for {
		select {
		case <-f.worker.Done():
			return errors.New("the worker exited")
		case <-f.gateway.Done():
			return errors.New("the gateway exited")
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
			if err := f.checkMemory(); err != nil {
				return err
			}
		}
	}
}

func (f *fuzz) checkMemory() error {
	_, worker := f.worker.Memory()
	_, gateway := f.gateway.Memory()
	if max(worker, gateway) > maxMemory {
		return fmt.Errorf("peak of the resident size: worker %d MiB, gateway %d MiB (at most %d)", worker/mib, gateway/mib, maxMemory/mib)
	}
	return nil
}

func (f *fuzz) line(after time.Duration) string {
	worker, workerPeak := f.worker.Memory()
	gateway, gatewayPeak := f.gateway.Memory()
	return fmt.Sprintf("%6.0fs  %d contexts answered; worker %d MiB, peak %d; gateway %d MiB, peak %d", after.Seconds(), f.done.Load(),
		worker/mib, workerPeak/mib, gateway/mib, gatewayPeak/mib)
}
