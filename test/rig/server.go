package rig

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
)

// startTemporal starts a dev server on a port, 0 for any, with the existing database.
func (r *Rig) startTemporal(ctx context.Context, port int) error {
	command, err := devserver.Find(ctx, func(message string) { fmt.Fprintln(os.Stderr, message) })
	if err != nil {
		return err
	}
	ports, err := devserver.FreePorts(0)
	if err != nil {
		return err
	}
	r.metrics = ports[0]
	r.server, err = devserver.Start(ctx, devserver.Options{
		Command: command, DataDir: r.dir, Port: port, MetricsPort: r.metrics, Untuned: r.options.Stock,
	})
	if err != nil {
		return err
	}
	if port == 0 {
		r.at.temporal = r.server.Address()
	}
	return nil
}

func portOf(address string) (int, error) {
	at, err := url.Parse(address)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(at.Port())
}

// RestartTemporal stops the Temporal server with SIGKILL or SIGTERM and restarts it after the given time, with
// the same database and port. The methods in this file are not safe for concurrent use.
func (r *Rig) RestartTemporal(ctx context.Context, kill bool, down time.Duration) error {
	if r.server == nil {
		return ErrNoServer
	}
	port, err := portOf("tcp://" + r.at.temporal)
	if err != nil {
		return err
	}
	if kill {
		if err := syscall.Kill(r.server.PID(), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the temporal server: %w", err)
		}
		<-r.server.Done()
	}
	_ = r.server.Stop()  // kills it after a timeout
	pause.For(ctx, down) // restart even if ctx is done
	if err := r.startTemporal(context.WithoutCancel(ctx), port); err != nil {
		return fmt.Errorf("restart the temporal server: %w", err)
	}
	return nil
}

var actionLine = regexp.MustCompile(`^action{.*action_type="([^"]+)".*namespace="default".*} ([0-9.e+]+)$`)

// Actions returns the actions that the Temporal server has counted in the namespace since its start, by type. It
// counts those that Temporal Cloud bills.
func (r *Rig) Actions(ctx context.Context) (map[string]int, error) {
	if r.server == nil {
		return nil, ErrNoServer
	}
	actions := map[string]int{}
	err := scrape(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", r.metrics), func(line string) error {
		found := actionLine.FindStringSubmatch(line)
		if found == nil {
			return nil
		}
		n, err := strconv.ParseFloat(found[2], 64)
		actions[found[1]] += int(n)
		return err
	})
	return actions, err
}

// Heap returns the size in bytes at which the heap of a gateway will be collected, and how often it was. The size follows
// from what was live after the last collection, so it does not depend on when it is read, unlike the resident memory.
func (r *Rig) Heap(ctx context.Context, gateway *Process) (goal float64, collections int, err error) {
	err = scrape(ctx, gateway.Ready["metrics"], func(line string) (err error) {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "go_memstats_next_gc_bytes":
			goal, err = strconv.ParseFloat(value, 64)
		case "go_gc_duration_seconds_count":
			collections, err = strconv.Atoi(value)
		}
		return err
	})
	return goal, collections, err
}

// scrape calls each with the lines of metrics for Prometheus.
func scrape(ctx context.Context, url string, each func(line string) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := each(lines.Text()); err != nil {
			return fmt.Errorf("metric %s: %w", lines.Text(), err)
		}
	}
	return lines.Err()
}
