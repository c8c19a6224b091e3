package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/internal/reload"
)

// withTLS returns the listener itself without --tls-cert. The certificate is read again when its files change.
func (a *app) withTLS(listener net.Listener, log *zap.Logger) (net.Listener, error) {
	o := a.gateway
	if o.TLSCert == "" {
		return listener, nil
	}
	certificate := reload.New(func(contents [][]byte) (*tls.Certificate, error) {
		for i, file := range []string{o.TLSCert, o.TLSKey} {
			if contents[i] == nil {
				return nil, fmt.Errorf("read the certificate: %s does not exist", file)
			}
		}
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil {
			return nil, fmt.Errorf("read the certificate %s with the key %s: %w", o.TLSCert, o.TLSKey, err)
		}
		log.Info("read the certificate", zap.Strings("names", pair.Leaf.DNSNames), zap.String("expires", pair.Leaf.NotAfter.UTC().Format(time.RFC3339)))
		return &pair, nil
	}, o.TLSCert, o.TLSKey)
	if _, err := certificate.Get(); err != nil {
		return nil, err
	}
	return tls.NewListener(listener, &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			current, err := certificate.Get()
			if err != nil {
				log.Error("the certificate was not read again and stays as it was", zap.Error(err))
			}
			return current, nil
		},
	}), nil
}
