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
