package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// tenantStore is the blob store of a tenant.
type tenantStore struct {
	contexts     []string
	bytes        int64
	err          error
	measurements int
}

func (s *tenantStore) of(l *log) fakeClient {
	return fakeClient{
		log: l,
		usage: func(names []string) (client.StoreUsage, error) {
			s.measurements++
			missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(s.contexts, name) })
			slices.Sort(missing)
			return client.StoreUsage{Contexts: len(s.contexts), Bytes: s.bytes, Missing: missing}, s.err
		},
	}
}

// quotas asks a gateway that limits a tenant, in a synctest bubble.
type quotas struct {
	t *testing.T
	g *gateway.Gateway
}

func (q quotas) require(status int, method, path, body string) {
	q.t.Helper()
	got := ask(q.t.Context(), q.g, method, path, body, by("acme", auth.RoleAdmin)...)
	synctest.Wait() // for the measurement
	require.Equal(q.t, status, got.Code, got.Body)
	if status == http.StatusForbidden || status == http.StatusInsufficientStorage {
		require.Contains(q.t, got.Body.String(), "urn:chronicle:problem:quota")
		require.Contains(q.t, got.Body.String(), "delete some, or ask the operator for more")
	}
}

func (q quotas) send(status int, name string) {
	q.t.Helper()
	q.require(status, http.MethodPost, "/contexts/"+name+"/events", hello)
}

func (q quotas) fork(status int) {
	q.t.Helper()
	q.require(status, http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001"}`)
}

func TestATenantHasALimitedNumberOfContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tenantStore{contexts: []string{"demo"}}
		l := newLog(event.UserMessage{Content: "Hello"})
		q := quotas{t, gateway.New(eachTenant{"acme": s.of(l)}, gateway.Options{Auth: claims{}, TenantContexts: 3})}
		defer q.g.Close()
		q.send(http.StatusAccepted, "demo")
		q.send(http.StatusAccepted, "new")
		q.send(http.StatusAccepted, "new")
		l.branch = func(o client.BranchOptions) (client.Branched, error) {
			return client.Branched{}, admitted(o, client.ErrExists)
		}
		q.fork(http.StatusConflict)
		l.branch = func(o client.BranchOptions) (client.Branched, error) {
			if err := admitted(o, nil); err != nil {
				return client.Branched{}, err
			}
			return client.Branched{ContextName: "demo-2", ForkedFrom: "demo:0001"}, nil
		}
		q.fork(http.StatusCreated)
		q.fork(http.StatusForbidden)
		q.send(http.StatusForbidden, "other")
		q.send(http.StatusAccepted, "new")
		q.send(http.StatusAccepted, "demo")
		require.Equal(t, 1, s.measurements, "they are counted in the meantime")

		time.Sleep(time.Minute) // bubble time
		q.send(http.StatusForbidden, "other")
		require.Equal(t, 2, s.measurements)
		q.send(http.StatusForbidden, "other") // no worker has opened the new contexts
		s.contexts = append(s.contexts, "new", "demo-2")
		time.Sleep(time.Second)
		q.send(http.StatusForbidden, "other")
		q.send(http.StatusForbidden, "other")
		s.contexts = s.contexts[1:] // one was deleted
		time.Sleep(time.Second)
		q.send(http.StatusAccepted, "other")
		q.send(http.StatusForbidden, "another")

		time.Sleep(time.Hour) // nobody opens the other
		q.send(http.StatusAccepted, "another")
		q.send(http.StatusForbidden, "more")
		q.require(http.StatusAccepted, http.MethodDelete, "/contexts/another?purge=true", "")
		q.send(http.StatusAccepted, "more")
	})
}

func TestAForkWithTheNameOfANewContextDoesNotUncountIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tenantStore{contexts: []string{"demo"}}
		l := newLog(event.UserMessage{Content: "Hello"})
		q := quotas{t, gateway.New(eachTenant{"acme": s.of(l)}, gateway.Options{Auth: claims{}, TenantContexts: 2})}
		defer q.g.Close()
		q.send(http.StatusAccepted, "demo")
		q.send(http.StatusAccepted, "new")
		l.branch = func(o client.BranchOptions) (client.Branched, error) {
			return client.Branched{}, admitted(o, client.ErrExists)
		}
		q.require(http.StatusConflict, http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001","name":"new"}`)
		q.send(http.StatusForbidden, "other")
	})
}

// admitted returns the error of a fork that is new.
func admitted(o client.BranchOptions, err error) error {
	if rejected := o.Admit(); rejected != nil {
		return rejected
	}
	return err
}

func TestARepeatedForkNeedsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tenantStore{contexts: []string{"demo"}}
		l := newLog(event.UserMessage{Content: "Hello"})
		q := quotas{t, gateway.New(eachTenant{"acme": s.of(l)}, gateway.Options{Auth: claims{}, TenantContexts: 2})}
		defer q.g.Close()
		q.send(http.StatusAccepted, "demo")
		isNew := true
		l.branch = func(o client.BranchOptions) (client.Branched, error) {
			if isNew {
				require.NoError(t, o.Admit())
				isNew = false
			}
			return client.Branched{ContextName: "demo-2", ForkedFrom: "demo:0001"}, nil
		}
		q.fork(http.StatusCreated)
		q.send(http.StatusForbidden, "other")
		q.fork(http.StatusCreated) // the same one, by its Idempotency-Key
		q.send(http.StatusForbidden, "other")
	})
}

func TestInvalidInputDoesNotCountAsAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tenantStore{}
		l := newLog()
		q := quotas{t, gateway.New(eachTenant{"acme": s.of(l)}, gateway.Options{Auth: claims{}, TenantContexts: 1})}
		defer q.g.Close()
		l.send = func([]event.Event) (client.Receipt, error) {
			return client.Receipt{}, &event.FieldError{Tag: event.TagUserMessage, Field: "settings.temperature", Problem: "5 is out of range (0 to 2)"}
		}
		q.send(http.StatusUnprocessableEntity, "demo")
		q.send(http.StatusAccepted, "new")
		q.send(http.StatusForbidden, "other")
	})
}

func TestATenantWithoutSpaceReadsClosesAndDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		s := &tenantStore{bytes: 10<<20 - 1}
		l := newLog(event.UserMessage{Content: "Hello"})
		q := quotas{t, gateway.New(eachTenant{"acme": s.of(l)}, gateway.Options{
			Auth: claims{}, TenantBytes: 10 << 20, Log: slog.New(slog.NewTextHandler(&written, nil)),
		})}
		defer q.g.Close()
		q.send(http.StatusAccepted, "demo")
		q.send(http.StatusAccepted, "demo")
		s.bytes++
		time.Sleep(time.Minute) // bubble time
		q.send(http.StatusAccepted, "demo")
		q.send(http.StatusInsufficientStorage, "demo")
		l.branch = func(o client.BranchOptions) (client.Branched, error) { return client.Branched{}, admitted(o, nil) }
		q.fork(http.StatusInsufficientStorage)
		q.require(http.StatusOK, http.MethodGet, "/contexts/demo/events", "")
		q.require(http.StatusAccepted, http.MethodDelete, "/contexts/demo", "")
		q.require(http.StatusAccepted, http.MethodDelete, "/contexts/demo?purge=true", "")
		require.Equal(t, 2, s.measurements)

		s.err = errors.New("the store is down")
		time.Sleep(time.Second)
		q.send(http.StatusInsufficientStorage, "demo")
		require.Contains(t, written.String(), `the usage of a tenant was not measured" error="the store is down"`)
		s.bytes, s.err = 0, nil
		time.Sleep(time.Second)
		q.send(http.StatusAccepted, "demo")
	})
}

func TestAMeasurementEndsWithTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		ended := false
		of := &blocked{fakeClient: fakeClient{log: newLog()}, ended: &ended}
		q := quotas{t, gateway.New(only{of}, gateway.Options{Auth: claims{}, TenantBytes: 1, Log: slog.New(slog.NewTextHandler(&written, nil))})}
		q.send(http.StatusAccepted, "demo")
		q.g.Close()
		synctest.Wait()
		require.True(t, ended)
		require.NotContains(t, written.String(), "was not measured")
	})
}

type blocked struct {
	fakeClient
	ended *bool
}

func (b *blocked) StoreUsage(ctx context.Context, _ ...string) (client.StoreUsage, error) {
	<-ctx.Done()
	*b.ended = true
	return client.StoreUsage{}, ctx.Err()
}

// only has one client for all tenants.
type only struct{ of *blocked }

func (c only) Tenant(string) (*blocked, error) { return c.of, nil }
func (only) Live() bool                        { return true }
func (only) Ping(context.Context) error        { return nil }
func (only) Limits() (limits client.Limits)    { return limits }
