package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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
	worker, gateway *rig.Process
	model           *model
	nats            *nats.Conn
	http            *http.Client
	note            note
	done, failed    atomic.Int64 // contexts
}

// key is that of the default provider. Nothing that a context records may contain it.
const key = "fuzz-key-0b8f4c6a1d73e952"

const providers = `[[budgets]]
label = "team"
tokens_per_day = 100000000
`

func run(ctx context.Context, o options) error {
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
	return errors.Join(failed, f.checkMemory(), f.model.problem())
}

const (
	doorTimeout = 20 * time.Second
	reportEvery = 30 * time.Second
)

func (f *fuzz) start(ctx context.Context) (err error) {
	if f.Rig, err = rig.Start(ctx, rig.Options{Seed: f.options.seed, LogDir: f.options.logs}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if f.model, err = startModel(); err != nil {
		return err
	}
	file := filepath.Join(f.model.dir, "providers.toml")
	if err := os.WriteFile(file, []byte(providers), 0o600); err != nil {
		return err
	}
	worker := f.Command("worker", "--continue-as-new-after", strconv.Itoa(f.options.continueAfter), "--drain-timeout", "1s",
		"--providers", file, "--allow-base-url", f.model.url, "--cached-contexts", "20")
	worker.Env = append(worker.Env, "OPENAI_BASE_URL="+f.model.url, "OPENAI_MODEL=hostile", "OPENAI_API_KEY="+key, memoryLimit)
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
	// memoryLimit makes the garbage collector of a process run more often, before it exceeds the limits of the flags.
	memoryLimit = "GOMEMLIMIT=512MiB"
)

func (f *fuzz) stop() {
	if f.nats != nil {
		f.nats.Close()
	}
	if f.gateway != nil {
		_ = f.gateway.Stop()
	}
	if f.worker != nil {
		_ = f.worker.Stop()
	}
	if f.model != nil {
		f.model.stop()
	}
	f.Rig.Stop()
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
	if worker > f.options.workerLimit || gateway > f.options.gatewayLimit {
		return fmt.Errorf("peak of the resident size: worker %d MiB (at most %d), gateway %d MiB (at most %d)",
			worker/mib, f.options.workerLimit/mib, gateway/mib, f.options.gatewayLimit/mib)
	}
	return nil
}

func (f *fuzz) line(after time.Duration) string {
	worker, workerPeak := f.worker.Memory()
	gateway, gatewayPeak := f.gateway.Memory()
	return fmt.Sprintf("%6.0fs  %d contexts answered; worker %d MiB, peak %d; gateway %d MiB, peak %d", after.Seconds(), f.done.Load(),
		worker/mib, workerPeak/mib, gateway/mib, gatewayPeak/mib)
}
