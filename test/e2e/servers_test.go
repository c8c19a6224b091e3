package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-9ed7edd4/chronicle/internal/devserver"
	"github.com/seed-9ed7edd4/chronicle/internal/natsserver"
	"github.com/seed-9ed7edd4/chronicle/internal/stream"
)

// If both variables are set, tests use running servers instead of starting a dev server
// and a NATS server. `make e2e-postgres` sets them, and NATS_USER and NATS_PASSWORD_FILE.
const (
	temporalVariable = "CHRONICLE_E2E_TEMPORAL" // host:port
	natsVariable     = "CHRONICLE_E2E_NATS"     // URL
	// The dev server of the tests has its default settings. `make test SERVER=stock` sets it.
	stockVariable = "CHRONICLE_E2E_STOCK"
	// A file with the pid of a Temporal server that is restarted when it is killed.
	// Optional.
	pidFileVariable = "CHRONICLE_E2E_TEMPORAL_PID_FILE"
	// The URL of a store that all tests share, since the workers of the topology bind the namespace
	// to it. Default: a temporary folder for each test. `make e2e-postgres` sets it.
	blobVariable = "CHRONICLE_E2E_BLOB_URL"
)

// natsAuth is used by all workers and clients of the tests.
func natsAuth() stream.Auth { return stream.Auth{}.WithEnv(os.Getenv) }

func blobURL(t *testing.T) string {
	t.Helper()
	if shared := os.Getenv(blobVariable); shared != "" {
		return shared
	}
	return "file://" + filepath.ToSlash(t.TempDir()) + "/blobs"
}

// running is the address of a server that the tests did not start.
type running string

func (r running) Address() string { return string(r) }
func (r running) URL() string     { return string(r) }

// findServers sets server and nats, starting them unless they are running.
func findServers(dir string) (stop func(), err error) {
	temporal, broker := os.Getenv(temporalVariable), os.Getenv(natsVariable)
	if (temporal == "") != (broker == "") {
		return nil, fmt.Errorf("set both %s and %s, or neither", temporalVariable, natsVariable)
	}
	if temporal != "" {
		server, nats = running(temporal), running(broker)
		return func() {}, nil
	}
	started, err := devserver.Start(context.Background(), devserver.Options{Command: command, DataDir: dir, Unsynced: true, Untuned: os.Getenv(stockVariable) != ""})
	if err != nil {
		return nil, err
	}
	embedded, err := natsserver.Start(natsserver.Options{})
	if err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	server, nats = started, embedded
	return func() {
		embedded.Shutdown()
		_ = started.Stop()
	}, nil
}

// devServerOnly skips a test on other servers than the dev server.
func devServerOnly(t *testing.T) {
	t.Helper()
	if address, others := server.(running); others {
		t.Skipf("dev server tests, not run on the server at %s", address)
	}
}

// topologyOnly skips a test on other servers than those of deploy/local.sh.
func topologyOnly(t *testing.T) {
	t.Helper()
	if _, others := server.(running); !others {
		t.Skip("production topology tests, run by make e2e-postgres")
	}
}
