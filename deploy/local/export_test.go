package main

import "context"

var Run = run

var FreePorts = freePorts

var WithEndpoint = withEndpoint

// S3Arguments returns the arguments of the S3 server in a compose file.
func S3Arguments(file, root, address string) ([]string, error) {
	c, err := load(context.Background(), file)
	if err != nil {
		return nil, err
	}
	service, err := c.service("s3")
	if err != nil {
		return nil, err
	}
	return s3Arguments(service, root, address)
}

// NATS is a running NATS server.
type NATS struct {
	URL       string
	Passwords map[string]string // files, by user
	topology  *topology
}

// StartNATS starts the NATS of a compose file, with the program in bin and the volumes in dir.
func StartNATS(ctx context.Context, file, bin, dir string) (*NATS, error) {
	c, err := load(ctx, file)
	if err != nil {
		return nil, err
	}
	n := &NATS{Passwords: map[string]string{}, topology: &topology{compose: c, bin: bin, dir: dir, end: func(error) {}}}
	if err := n.topology.startNATS(ctx); err != nil {
		return nil, err
	}
	n.URL = n.topology.natsURL
	for _, name := range []string{"worker", "gateway"} {
		service, err := c.service(name)
		if err != nil {
			return nil, err
		}
		if n.Passwords[*service.Environment["NATS_USER"]], err = n.topology.natsPassword(service); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *NATS) Stop() error { return n.topology.stop() }
