package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-9ed7edd4/chronicle/internal/connect"
)

// checkTimeout allows the gateway to wait for Temporal.
const checkTimeout = 10 * time.Second

// checkReady returns an error unless the gateway on this machine is ready.
func (a *app) checkReady(ctx context.Context) error {
	listen := a.gateway.Listen
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	scheme, check := "http", http.DefaultClient
	if a.gateway.TLSCert != "" {
		// The certificate names another host than this machine, and the check tells no secret.
		scheme, check = "https", &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	url := scheme + "://" + connect.Dialable(listen) + "/readyz"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usagef("%s %q: %v", a.config.Label("listen"), listen, err)
	}
	response, err := check.Do(r)
	if err != nil {
		return fmt.Errorf("check the gateway: %w (start it with starter serve --listen %s)", err, listen)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("check the gateway: GET %s: %s (its log says why)", url, response.Status)
	}
	return nil
}
