package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// targets are the addresses that Prometheus scrapes.
type targets struct{ worker, gateway []string }

// startGateway waits until its health check passes.
func (t *topology) startGateway(ctx context.Context) error {
	service, err := t.compose.service("gateway")
	if err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	password, err := t.natsPassword(service)
	if err != nil {
		return err
	}
	address, metrics := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])), net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1]))
	// The last value of a repeated flag wins.
	cmd := exec.Command(t.program("starter"), append(slices.Clone(service.Command), "--listen", address, "--metrics", metrics)...)
	cmd.Env = environment(service, map[string]string{
		"TEMPORAL_ADDRESS":   t.temporalAddress,
		"NATS_URL":           t.natsURL,
		"NATS_PASSWORD_FILE": password,
		"BLOB_URL":           t.blobURL,
		"HOME":               t.dir,
	})
	if err := t.serve(service, "gateway", cmd, nil); err != nil {
		return err
	}
	t.gatewayURL, t.targets.gateway = "http://"+address, []string{metrics}
	if err := awaitTCP(ctx, address); err != nil {
		return err
	}
	check, err := healthCommand(service)
	if err != nil {
		return err
	}
	return t.run(ctx, "gateway-check", exec.Command(t.program("starter"), append(check, "--listen", address)...), nil)
}

// startPrometheus starts Prometheus with the mounted files. It replaces the addresses and paths in them.
func (t *topology) startPrometheus(ctx context.Context) error {
	service, err := t.compose.service("prometheus")
	if err != nil {
		return err
	}
	mounted, err := t.compose.mounted(service, "/etc/prometheus/prometheus.yml")
	if err != nil {
		return err
	}
	alerts, err := t.compose.mounted(service, "/etc/prometheus/alerts.yml")
	if err != nil {
		return err
	}
	data, err := os.ReadFile(mounted)
	if err != nil {
		return err
	}
	config, err := t.withTargets(data, alerts)
	if err != nil {
		return fmt.Errorf("%s: %w", mounted, err)
	}
	file := filepath.Join(t.dir, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	cmd := exec.Command(t.program("prometheus"), "--config.file", file,
		"--storage.tsdb.path", filepath.Join(t.dir, "prometheus"), "--web.listen-address", address, "--log.level", "warn")
	if err := t.serve(service, "prometheus", cmd, nil); err != nil {
		return err
	}
	t.prometheusURL = "http://" + address
	return awaitHealth(ctx, service, address)
}

// withTargets replaces the addresses of the services and the paths of the rules in a configuration.
func (t *topology) withTargets(data []byte, alerts string) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	config["rule_files"] = []string{alerts}
	known := map[string][]string{"worker": t.targets.worker, "gateway": t.targets.gateway}
	jobs, _ := config["scrape_configs"].([]any)
	if len(jobs) != len(known) {
		return nil, fmt.Errorf("%d scrape_configs (want one for each of worker and gateway)", len(jobs))
	}
	for _, each := range jobs {
		job, _ := each.(map[string]any)
		name, _ := job["job_name"].(string)
		addresses, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("unknown job %q (want worker or gateway)", name)
		}
		delete(job, "dns_sd_configs")
		job["static_configs"] = []map[string]any{{"targets": addresses}}
	}
	return yaml.Marshal(config)
}
