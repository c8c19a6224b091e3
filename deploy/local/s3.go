package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"
)

// bucketName is the only bucket of the S3 server.
const bucketName = "chronicle"

// startOnlyS3 returns the environment of the clients. The metadata of objects is in files, since not
// every file system has extended attributes.
func (t *topology) startOnlyS3(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("not ready within %v", startWithin))
	defer cancel()
	if err := t.prepare("make e2e-s3", "versitygw"); err != nil {
		return nil, err
	}
	objects, metadata := filepath.Join(t.dir, "objects"), filepath.Join(t.dir, "metadata")
	for _, dir := range []string{filepath.Join(objects, bucketName), filepath.Join(metadata, bucketName)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	access, secret := rand.Text(), rand.Text()
	cmd := exec.Command(t.program("versitygw"), "--port", address, "--quiet", "--keep-alive", "posix", "--sidecar", metadata, objects)
	cmd.Env = []string{"ROOT_ACCESS_KEY=" + access, "ROOT_SECRET_KEY=" + secret, "PATH=" + os.Getenv("PATH"), "HOME=" + t.dir}
	if err := t.serve(types.ServiceConfig{}, "s3", cmd, nil); err != nil {
		return nil, err
	}
	if err := awaitTCP(ctx, address); err != nil {
		return nil, err
	}
	query := url.Values{"endpoint": {"http://" + address}, "region": {"us-east-1"}, "use_path_style": {"true"}}
	return []string{
		"BLOB_URL=s3://" + bucketName + "?" + query.Encode(),
		"AWS_ACCESS_KEY_ID=" + access,
		"AWS_SECRET_ACCESS_KEY=" + secret,
		// Nothing of the caller's AWS configuration applies.
		"AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true",
	}, nil
}
