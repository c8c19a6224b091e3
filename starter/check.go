package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// checkTimeout allows the gateway to wait for Temporal.
const checkTimeout = 10 * time.Second

// checkReady returns an error unless the gateway on this machine is ready.
func checkReady(ctx context.Context, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("--listen %q: want HOST:PORT, like 127.0.0.1:8080", listen)
	}
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "localhost" // the gateway listens on all addresses
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + "/readyz"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usagef("--listen %q: %v", listen, err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("check the gateway: %w (start it with starter serve --listen %s)", err, listen)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("check the gateway: GET %s: %s (its log says why)", url, response.Status)
	}
	return nil
}
