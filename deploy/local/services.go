package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/compose-spec/compose-go/v2/types"
)

// setUpSchema runs the schema script, as the container does.
func (t *topology) setUpSchema(ctx context.Context) error {
	return t.script(ctx, "schema", map[string]string{
		"SQL_HOST": "127.0.0.1",
		"SQL_PORT": strconv.Itoa(t.postgresPort),
	})
}

// startTemporal starts the server. It uses the configuration template embedded in the
// server, filled from the environment as in the container.
func (t *topology) startTemporal(ctx context.Context) error {
	service, err := t.compose.service("temporal")
	if err != nil {
		return err
	}
	dynamic, err := t.compose.mounted(service, *service.Environment["DYNAMIC_CONFIG_FILE_PATH"])
	if err != nil {
		return err
	}
	changes := map[string]string{
		"POSTGRES_SEEDS":           "127.0.0.1",
		"DB_PORT":                  strconv.Itoa(t.postgresPort),
		"BIND_ON_IP":               "127.0.0.1",
		"DYNAMIC_CONFIG_FILE_PATH": dynamic,
	}
	listening := []string{
		"FRONTEND_GRPC_PORT", "FRONTEND_MEMBERSHIP_PORT", "FRONTEND_HTTP_PORT",
		"HISTORY_GRPC_PORT", "HISTORY_MEMBERSHIP_PORT",
		"MATCHING_GRPC_PORT", "MATCHING_MEMBERSHIP_PORT",
		"WORKER_GRPC_PORT", "WORKER_MEMBERSHIP_PORT",
	}
	ports, err := freePorts(len(listening))
	if err != nil {
		return err
	}
	for i, name := range listening {
		changes[name] = strconv.Itoa(ports[i])
	}
	t.temporalAddress = net.JoinHostPort("127.0.0.1", changes["FRONTEND_GRPC_PORT"])
	cmd := exec.Command(t.program("temporal-server"), "start")
	cmd.Env = environment(service, changes)
	if err := t.serve(service, "temporal", cmd, nil); err != nil {
		return err
	}
	return awaitTCP(ctx, t.temporalAddress)
}

func (t *topology) makeNamespace(ctx context.Context) error {
	service, err := t.compose.service("namespace")
	if err != nil {
		return err
	}
	t.namespace = *service.Environment["TEMPORAL_NAMESPACE"]
	return t.script(ctx, "namespace", map[string]string{
		"TEMPORAL_ADDRESS": t.temporalAddress,
		// Ignore the caller's configuration file.
		"TEMPORAL_CONFIG_FILE": os.DevNull,
	})
}

func (t *topology) startNATS(ctx context.Context) error {
	service, err := t.compose.service("nats")
	if err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	script, err := t.compose.mounted(service, service.Entrypoint[1])
	if err != nil {
		return err
	}
	changes := map[string]string{"PATH": t.bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	if changes["NATS_CONFIG"], err = t.compose.mounted(service, *service.Environment["NATS_CONFIG"]); err != nil {
		return err
	}
	for _, name := range []string{"WORKER_PASSWORD_FILE", "VIEWER_PASSWORD_FILE"} {
		if changes[name], err = inVolume(service, *service.Environment[name], t.dir); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(changes[name]), 0o755); err != nil {
			return err
		}
	}
	// The last value of a repeated flag wins.
	args := append(service.Command, "--addr", "127.0.0.1", "--port", strconv.Itoa(ports[0]), "--http_port", strconv.Itoa(ports[1]))
	cmd := exec.Command(service.Entrypoint[0], append([]string{script}, args...)...)
	cmd.Env = environment(service, changes)
	if err := t.serve(service, "nats", cmd, nil); err != nil {
		return err
	}
	t.natsURL = "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	return awaitHealth(ctx, service, net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1])))
}

// natsPassword returns the file with the NATS password of a service.
func (t *topology) natsPassword(service types.ServiceConfig) (string, error) {
	return inVolume(service, *service.Environment["NATS_PASSWORD_FILE"], t.dir)
}

// startWorkers waits until each worker is ready and the health check passes.
func (t *topology) startWorkers(ctx context.Context) error {
	service, err := t.compose.service("worker")
	if err != nil {
		return err
	}
	password, err := t.natsPassword(service)
	if err != nil {
		return err
	}
	env := environment(service, map[string]string{
		"TEMPORAL_ADDRESS":   t.temporalAddress,
		"NATS_URL":           t.natsURL,
		"NATS_PASSWORD_FILE": password,
		"BLOB_URL":           t.blobURL,
	})
	if t.workers < 0 {
		t.workers = service.GetScale()
	}
	ports, err := freePorts(t.workers + 1)
	if err != nil {
		return err
	}
	t.modelURL = fmt.Sprintf("http://127.0.0.1:%d/v1", ports[t.workers])
	ready := make([]*firstWrite, t.workers)
	for i := range ready {
		ready[i] = &firstWrite{happened: make(chan struct{})}
		metrics := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i]))
		t.targets.worker = append(t.targets.worker, metrics)
		// The last value of a repeated flag wins.
		cmd := exec.Command(t.program("worker"), append(slices.Clone(service.Command), "--metrics", metrics, "--allow-base-url", t.modelURL)...)
		cmd.Env, cmd.Stdout = env, ready[i]
		if err := t.serve(service, fmt.Sprintf("worker-%d", i+1), cmd, nil); err != nil {
			return err
		}
	}
	for _, r := range ready {
		select {
		case <-r.happened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if t.workers == 0 {
		return nil
	}
	check, err := healthCommand(service)
	if err != nil {
		return err
	}
	cmd := exec.Command(t.program("worker"), check...)
	cmd.Env = env
	return t.run(ctx, "worker-check", cmd, nil)
}

func healthCommand(service types.ServiceConfig) ([]string, error) {
	if service.HealthCheck == nil || len(service.HealthCheck.Test) < 3 || service.HealthCheck.Test[0] != "CMD" {
		return nil, fmt.Errorf(`service %s: unsupported health check (want ["CMD", PROGRAM, ARGUMENT...])`, service.Name)
	}
	return service.HealthCheck.Test[2:], nil
}

// script runs the entry point script of a container, with bin/ first on PATH.
func (t *topology) script(ctx context.Context, name string, changes map[string]string) error {
	service, err := t.compose.service(name)
	if err != nil {
		return err
	}
	shell, target := service.Entrypoint[0], service.Entrypoint[len(service.Entrypoint)-1]
	file, err := t.compose.mounted(service, target)
	if err != nil {
		return err
	}
	cmd := exec.Command(shell, file)
	cmd.Env = append(environment(service, changes), "PATH="+t.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.dir)
	return t.run(ctx, name, cmd, nil)
}

// awaitHealth waits until the URL in the health check of a service responds. It replaces the host and port
// of the URL by address.
func awaitHealth(ctx context.Context, service types.ServiceConfig, address string) error {
	check, err := healthCommand(service)
	if err != nil {
		return err
	}
	u, err := url.Parse(check[len(check)-1])
	if err != nil || u.Scheme != "http" {
		return fmt.Errorf("service %s: unsupported health check %q (want an http URL as the last argument)", service.Name, check)
	}
	u.Host = address
	return until(ctx, func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s", u, response.Status)
		}
		return nil
	})
}

func awaitTCP(ctx context.Context, address string) error {
	return until(ctx, func() error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// firstWrite reports the first write. A worker writes to standard output only when it is
// ready.
type firstWrite struct {
	once     sync.Once
	happened chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.happened) })
	return len(p), nil
}
