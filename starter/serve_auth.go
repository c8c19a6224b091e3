package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/config"
	"github.com/seed-9ed7edd4/chronicle/internal/connect"
)

// checkAuth validates the settings of authentication and TLS.
func (a *app) checkAuth() error {
	o, c := a.gateway, a.config
	for _, method := range o.Auth {
		switch method {
		case config.AuthTokens, config.AuthOIDC, config.AuthProxy:
		case config.AuthNone:
			if len(o.Auth) > 1 {
				return usagef("%s none: excludes other methods", c.Label("auth"))
			}
		default:
			return usagef("%s %q: want tokens, oidc, proxy or none", c.Label("auth"), method)
		}
	}
	for _, s := range []struct {
		method             string
		required, optional []string
	}{
		{config.AuthOIDC, []string{"oidc-issuer", "oidc-client-id"}, []string{"oidc-client-secret-file", "oidc-claim"}},
		{config.AuthProxy, []string{"proxy-secret-file"}, []string{"proxy-header"}},
	} {
		isUsed := slices.Contains(o.Auth, s.method)
		for _, flag := range slices.Concat(s.required, s.optional) {
			switch {
			case isUsed && slices.Contains(s.required, flag) && !c.IsGiven(flag):
				return usagef("--%s: missing (--auth %s requires it)", flag, s.method)
			case !isUsed && c.IsGiven(flag):
				return usagef("%s: requires --auth %s", c.Label(flag), s.method)
			}
		}
	}
	if o.OIDC.Issuer != "" && !isIssuer(o.OIDC.Issuer) {
		return usagef("%s %q: want the https URL of a provider", c.Label("oidc-issuer"), o.OIDC.Issuer)
	}
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return usagef("--tls-cert and --tls-key: want both or neither")
	}
	for flag, settings := range map[string][]string{"oidc-claim": o.OIDC.Claims, "proxy-header": o.ProxyHeaders} {
		if _, err := auth.ParseMapping(auth.Mapping{}, settings); err != nil {
			return usagef("%s %w", c.Label(flag), err)
		}
	}
	if _, err := auth.ParseGroups(o.Groups); err != nil {
		return usagef("%s %w", c.Label("group"), err)
	}
	if _, err := auth.ParseRoles(o.DefaultRoles); err != nil {
		return usagef("%s %w", c.Label("default-role"), err)
	}
	return a.checkTenantLimits()
}

func (a *app) checkTenantLimits() error {
	o, c := a.gateway, a.config
	for _, flag := range []string{"tenant-rate", "tenant-streams", "tenant-contexts", "tenant-storage"} {
		if c.IsGiven(flag) && (len(o.Auth) == 0 || slices.Contains(o.Auth, config.AuthNone)) {
			return usagef("%s: requires --auth tokens, oidc or proxy", c.Label(flag))
		}
	}
	for flag, limit := range map[string]int{"tenant-contexts": o.Tenants.Contexts, "tenant-storage": o.Tenants.MiB} {
		switch {
		case limit < 0:
			return usagef("%s %d: want 1 or more, or 0 for no limit", c.Label(flag), limit)
		case limit > 0 && slices.Contains([]string{"", "none"}, a.connection.BlobURL):
			return usagef("%s: requires --blob-url, to measure what tenants store", c.Label(flag))
		}
	}
	return nil
}

// isIssuer reports whether a text is the URL of a provider that the network cannot forge.
func isIssuer(text string) bool {
	issuer, err := url.Parse(text)
	return err == nil && issuer.Host != "" && (issuer.Scheme == "https" || issuer.Scheme == "http" && connect.IsLoopback(issuer.Hostname()))
}

// checkAccess returns an error if other machines could reach the gateway without authentication, unless the operator says so.
func (a *app) checkAccess() error {
	if a.isOpen() && len(a.gateway.Auth) == 0 {
		return usagef("%s %s: anyone who can reach this address could read and write all contexts (set --auth; or --auth none if something else decides who reaches it)",
			a.config.Label("listen"), a.gateway.Listen)
	}
	return nil
}

// isOpen reports whether other machines can reach the address of the gateway.
func (a *app) isOpen() bool {
	host, _, _ := net.SplitHostPort(a.gateway.Listen) // it is valid
	return !connect.IsLoopback(host)
}

func (a *app) warnAboutAccess(log *zap.Logger) {
	listen := zap.String("listen", a.gateway.Listen)
	switch {
	case !a.isOpen():
	case slices.Contains(a.gateway.Auth, config.AuthNone):
		log.Warn("no authentication: anyone who can reach the address can read and write all contexts", listen)
	case a.gateway.TLSCert == "":
		log.Warn("no TLS: credentials and conversations are readable on the network, unless a proxy encrypts them (see --tls-cert)", listen)
	}
}

// secure sets the options for authentication and the audit log, which the returned function closes.
func (a *app) secure(ctx context.Context, options *gateway.Options, log *zap.Logger) (closeAudit func() error, err error) {
	service, err := a.newAuth(ctx, options.Log)
	if err != nil {
		return nil, err
	}
	if service != nil {
		options.Auth, options.SignIn = service, service
	}
	options.Audit, closeAudit, err = a.newAuditLog(log)
	return closeAudit, err
}

// newAuth returns nil without authentication.
func (a *app) newAuth(ctx context.Context, log *slog.Logger) (*auth.Service, error) {
	o := a.gateway
	if len(o.Auth) == 0 || slices.Contains(o.Auth, config.AuthNone) {
		return nil, nil
	}
	options := auth.Options{Log: log, PublicURL: o.PublicURL}
	defaults, err := auth.ParseRoles(o.DefaultRoles)
	if err != nil {
		return nil, err
	}
	groups, err := auth.ParseGroups(o.Groups)
	if err != nil {
		return nil, err
	}
	mapping := func(base auth.Mapping, settings []string) auth.Mapping {
		base.Groups, base.DefaultRoles = groups, defaults
		base, _ = auth.ParseMapping(base, settings) // checkAuth accepted them
		return base
	}
	if slices.Contains(o.Auth, config.AuthTokens) {
		if err := auth.TokenFile(o.Tokens).Check(); err != nil {
			return nil, usagef("%s %s: %w (make one with \"%s token create\")", a.config.Label("tokens"), o.Tokens, err, a.program())
		}
		options.Tokens = auth.OpenTokens(auth.TokenFile(o.Tokens), log)
	}
	if slices.Contains(o.Auth, config.AuthProxy) {
		secret, err := a.secret("proxy-secret-file", o.ProxySecretFile)
		if err != nil {
			return nil, err
		}
		options.Proxy = &auth.Proxy{Secret: secret, Mapping: mapping(auth.ProxyMapping, o.ProxyHeaders)}
	}
	if slices.Contains(o.Auth, config.AuthOIDC) {
		secret := ""
		if o.OIDC.ClientSecretFile != "" {
			if secret, err = a.secret("oidc-client-secret-file", o.OIDC.ClientSecretFile); err != nil {
				return nil, err
			}
		}
		options.OIDC = auth.NewOIDC(auth.OIDCOptions{
			Issuer: o.OIDC.Issuer, ClientID: o.OIDC.ClientID, ClientSecret: secret, Mapping: mapping(auth.OIDCMapping, o.OIDC.Claims),
		})
		go func() {
			if err := options.OIDC.Connect(ctx); err != nil {
				log.Warn("sign-in at the provider fails until it responds", "error", err)
			}
		}()
	}
	if o.SessionKeyFile != "" {
		key, err := a.secret("session-key-file", o.SessionKeyFile)
		if err != nil {
			return nil, err
		}
		options.SessionKey = []byte(key)
	}
	service, err := auth.New(options)
	if err != nil {
		return nil, usagef("%s: %w", a.config.Label("auth"), err)
	}
	return service, nil
}

// secret returns the content of a file without the white space around it.
func (a *app) secret(flag, file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("%s: %w", a.config.Label(flag), err)
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", a.config.Label(flag), file)
	}
	return secret, nil
}
