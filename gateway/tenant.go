package gateway

import (
	"context"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// tenant is what the requests of one tenant share: its contexts, what is cached of them, and its limits.
type tenant struct {
	name    string // "": the contexts without a tenant
	open    func(name string) (named, error)
	index   *tenantIndex
	rooms   rooms
	rate    *rate.Limiter
	streams atomic.Int64
}

// tenants are those with requests so far: few, since an operator gives credentials to each.
type tenants struct {
	make func(name string) (*tenant, error)

	mu  sync.Mutex
	all map[string]*tenant
}

func newTenants[T TenantClient[C], C Context](g *Gateway, client Client[T]) *tenants {
	return &tenants{all: map[string]*tenant{}, make: func(name string) (*tenant, error) {
		of, err := client.Tenant(name)
		if err != nil {
			return nil, forbidden("the credential names an invalid tenant: %v", err)
		}
		known, contexts := newNames(), g.newIndex(name, of)
		limits := &quota{
			contexts: g.options.TenantContexts, bytes: g.options.TenantBytes, measure: of.StoreUsage, ctx: g.closing, log: g.options.Log, created: map[string]time.Time{},
		}
		return &tenant{
			name: name,
			open: func(name string) (named, error) {
				c, err := of.Open(name)
				return named{c, known, limits, contexts}, err
			},
			index: contexts,
			rooms: rooms{ctx: g.closing, linger: g.options.Linger, names: known, open: map[string]*room{}},
			rate:  newTenantRate(g.options.TenantRate),
		}, nil
	}}
}

func newTenantRate(limit float64) *rate.Limiter {
	if limit < 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(limit), int(min(max(1, 4*limit), math.MaxInt32)))
}

// of fails for an invalid name.
func (ts *tenants) of(name string) (*tenant, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t, ok := ts.all[name]; ok {
		return t, nil
	}
	t, err := ts.make(name)
	if err == nil {
		ts.all[name] = t
	}
	return t, err
}

// close waits until no context is followed, and closes the indexes. End the context of the rooms before.
func (ts *tenants) close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		t.rooms.close()
		t.index.close()
	}
}

type tenantKey struct{}

// tenantOf returns the tenant of a request that is not public.
func tenantOf(r *http.Request) *tenant { return r.Context().Value(tenantKey{}).(*tenant) }

// enter serves a request as one of the tenant of its sender.
func (g *Gateway) enter(w http.ResponseWriter, r *http.Request, identity auth.Identity, next http.HandlerFunc) error {
	t, err := g.tenants.of(identity.Tenant)
	if err != nil {
		return err
	}
	if out, ok := w.(*response); ok {
		out.tenant = identity.Tenant
	}
	if g.options.Auth != nil { // else the limits of all clients suffice
		if !t.rate.Allow() {
			return problem(problemRate, http.StatusTooManyRequests, "Too many requests", "those of the tenant; retry after the delay in Retry-After")
		}
		if wantsStream(r) {
			release, err := g.openTenantStream(t)
			if err != nil {
				return err
			}
			defer release()
		}
	}
	if identity.Shared != nil {
		leave, err := enterShared(r.Context(), t, *identity.Shared)
		if err != nil {
			return err
		}
		defer leave()
	}
	next(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, t)))
	return nil
}

// openTenantStream counts a stream of a tenant until release is called.
func (g *Gateway) openTenantStream(t *tenant) (release func(), err error) {
	limit := g.options.StreamsPerTenant
	release = func() { t.streams.Add(-1) }
	if t.streams.Add(1) > int64(limit) && limit >= 0 && g.options.Auth != nil {
		release()
		return nil, problem(problemStreams, http.StatusTooManyRequests, "Too many streams", "a tenant may have %d open streams; close one first", limit)
	}
	return release, nil
}

// countStreams counts a request as n streams until release is called. If its header shows that it is a stream, one is
// counted already.
func (g *Gateway) countStreams(r *http.Request, w http.ResponseWriter, n int) (release func(), err error) {
	if wantsStream(r) {
		n--
	}
	var all []func()
	release = func() {
		for _, one := range all {
			one()
		}
	}
	for range n {
		one, err := g.openTenantStream(tenantOf(r))
		if err == nil {
			all = append(all, one)
			if out, ok := w.(*response); ok {
				if one, err = g.openStream(out.client); err == nil {
					all = append(all, one)
				}
			}
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}
