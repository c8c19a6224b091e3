package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// startS3 starts the blob store, with its volumes as directories.
func (t *topology) startS3(ctx context.Context) error {
	service, err := t.compose.service("s3")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	root := filepath.Join(t.dir, "s3")
	for _, volume := range service.Volumes {
		if err := os.MkdirAll(filepath.Join(root, volume.Target), 0o755); err != nil {
			return err
		}
	}
	args, err := s3Arguments(service, root, address)
	if err != nil {
		return err
	}
	cmd := exec.Command(t.program("versitygw"), args...)
	cmd.Env = environment(service, map[string]string{"HOME": t.dir})
	if err := t.serve(service, "s3", cmd, nil); err != nil {
		return err
	}
	if err := awaitHealth(ctx, service, address); err != nil {
		return err
	}
	worker, err := t.compose.service("worker")
	if err != nil {
		return err
	}
	t.blobURL, err = withEndpoint(*worker.Environment["BLOB_URL"], "http://"+address)
	return err
}

// s3Arguments replaces the port, and the directories that contain volumes. With a second --port, the
// server would listen on both addresses.
func s3Arguments(service types.ServiceConfig, root, address string) ([]string, error) {
	args := slices.Clone(service.Command)
	port := slices.Index(args, "--port") + 1
	if port == 0 || port == len(args) {
		return nil, fmt.Errorf("service %s: command %q has no --port HOST:PORT", service.Name, args)
	}
	args[port] = address
	for i, arg := range args {
		if slices.ContainsFunc(service.Volumes, func(v types.ServiceVolumeConfig) bool { return strings.HasPrefix(v.Target, arg+"/") }) {
			args[i] = filepath.Join(root, arg)
		}
	}
	return args, nil
}

// withEndpoint replaces the endpoint in the URL of an S3 bucket.
func withEndpoint(bucket, endpoint string) (string, error) {
	u, err := url.Parse(bucket)
	if err != nil {
		return "", fmt.Errorf("BLOB_URL: %w", err)
	}
	query := u.Query()
	if u.Scheme != "s3" || !query.Has("endpoint") {
		return "", fmt.Errorf("BLOB_URL %s: want s3://BUCKET?endpoint=URL", bucket)
	}
	query.Set("endpoint", endpoint)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// credentials returns variables with the credentials of the workers for NATS and S3, which also turn off all other
// AWS configuration of the caller.
func (t *topology) credentials() ([]string, error) {
	worker, err := t.compose.service("worker")
	if err != nil {
		return nil, err
	}
	password, err := t.natsPassword(worker)
	if err != nil {
		return nil, err
	}
	return []string{
		"NATS_USER=" + *worker.Environment["NATS_USER"],
		"NATS_PASSWORD_FILE=" + password,
		"AWS_ACCESS_KEY_ID=" + *worker.Environment["AWS_ACCESS_KEY_ID"],
		"AWS_SECRET_ACCESS_KEY=" + *worker.Environment["AWS_SECRET_ACCESS_KEY"],
		"AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true",
	}, nil
}
