package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	sdkclient "go.temporal.io/sdk/client"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/archive"
	"github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs"
	"github.com/seed-9ed7edd4/chronicle/internal/pause"
	"github.com/seed-9ed7edd4/chronicle/internal/wire"
	"github.com/seed-9ed7edd4/chronicle/test/rig"
)

// purgeTimeout bounds the rounds of tenants after the last fault. A deletion waits a minute for activities of killed workers.
const purgeTimeout = 4 * time.Minute

// tenants are two tenants of a gateway with authentication.
type tenants struct {
	gateway *rig.Process
	tokens  [2]string // of an admin of each
	invalid []string  // expired, revoked and malformed ones
}

var tenantNames = [2]string{"acme", "globex"}

func (s *soak) startTenants(ctx context.Context) (err error) {
	file := auth.TokenFile(filepath.Join(s.dir, "tokens"))
	create := func(tenant string, expires time.Duration) (token, id string) {
		identity := auth.Identity{Subject: "soak", Tenant: tenant, Roles: []auth.Role{auth.RoleAdmin}}
		token, record, createErr := file.Create(identity, expires)
		err = errors.Join(err, createErr)
		secrets = append(secrets, token)
		return token, record.ID
	}
	for i, tenant := range tenantNames {
		s.tenants.tokens[i], _ = create(tenant, 0)
	}
	expired, _ := create(tenantNames[0], time.Second)
	revoked, id := create(tenantNames[0], 0)
	if err = errors.Join(err, file.Revoke(id)); err != nil {
		return err
	}
	pause.For(ctx, time.Second)
	s.tenants.invalid = []string{expired, revoked, "x"}
	s.tenants.gateway, err = s.StartGateway(ctx, "--auth", "tokens", "--tokens", string(file))
	return err
}

// runTenants manages one context after the other over HTTP, by the first tenant.
func (s *soak) runTenants(ctx, faults context.Context, n int) error {
	until, _ := faults.Deadline()
	rest, cancel := context.WithDeadlineCause(ctx, until.Add(purgeTimeout), fmt.Errorf("not done %v after the last fault", purgeTimeout))
	defer cancel()
	for i := 0; i == 0 || faults.Err() == nil; i++ {
		m := manager{soak: s, name: fmt.Sprintf("soak-%d-%03d-%d", s.options.seed, n, i)}
		if err := m.round(rest); err != nil {
			return fmt.Errorf("%s: %w\nrepeat: -seed %d -context %d", m.name, errors.Join(err, context.Cause(rest)), s.options.seed, n)
		}
	}
	s.counts.add(checked, 1)
	return nil
}

// manager manages a context. The other tenant has one with the same name.
type manager struct {
	*soak
	name string
}

func (m manager) round(ctx context.Context) error {
	for i := range tenantNames {
		if err := m.send(ctx, i, "message", event.UserMessage{Content: m.message(i, "first")}); err != nil {
			return err
		}
	}
	log, err := m.awaitAnswer(ctx, 0, m.name, "first")
	if err != nil {
		return err
	}
	other, err := m.awaitAnswer(ctx, 1, m.name, "first")
	if err != nil {
		return err
	}
	if err := m.setDetails(ctx); err != nil {
		return err
	}
	fork, err := m.fork(ctx, log)
	if err != nil {
		return err
	}
	forked, err := m.awaitAnswer(ctx, 0, fork, "fork")
	if err != nil {
		return err
	}
	for i, e := range log {
		if !e.Timestamp.Equal(forked[i].Timestamp) || e.Tag() != forked[i].Tag() {
			return fmt.Errorf("the fork %s has %s in place of %s", fork, encode(forked[i]), encode(e))
		}
	}
	if err := m.isDenied(ctx, fork); err != nil {
		return err
	}
	if err := m.purge(ctx); err != nil {
		return err
	}
	for _, kept := range []struct {
		tenant int
		name   string
		log    []event.Event
	}{{0, fork, forked}, {1, m.name, other}} {
		now, err := m.events(ctx, kept.tenant, kept.name)
		if err != nil {
			return err
		}
		if len(now) < len(kept.log) || !bytes.Equal(encode(now[:len(kept.log)]), encode(kept.log)) {
			return fmt.Errorf("after the deletion, %s of %s has other events:\n%s", kept.name, tenantNames[kept.tenant], tail(now))
		}
	}
	return nil
}

// message returns a text that the model answers, and that no other context has.
func (m manager) message(tenant int, purpose string) string {
	return rig.Message{Key: m.name + "-" + tenantNames[tenant] + "-" + purpose, Tokens: 5, Every: every}.String()
}

// response is what the gateway answers to a request, other than that it cannot answer it now.
type response struct {
	status int
	body   []byte
}

func (r response) want(status int, request string) error {
	if r.status != status {
		return fmt.Errorf("%s: %d %.1000s (want %d)", request, r.status, r.body, status)
	}
	return nil
}

// do repeats a request until the gateway answers it.
func (m manager) do(ctx context.Context, token, method, path, key string, body any) (got response, err error) {
	err = retry(ctx, attemptTimeout, func(ctx context.Context) error {
		var content io.Reader
		if body != nil {
			content = bytes.NewReader(encode(body))
		}
		request, err := http.NewRequestWithContext(ctx, method, m.tenants.gateway.Ready["url"]+path, content)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		if body != nil {
			request.Header.Set("Content-Type", "application/json")
		}
		if key != "" {
			request.Header.Set("Idempotency-Key", m.name+"-"+key)
		}
		answer, err := m.http.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		got.status = answer.StatusCode
		if got.body, err = io.ReadAll(answer.Body); err == nil && (got.status >= 500 || got.status == http.StatusTooManyRequests) {
			err = fmt.Errorf("%s %s: %d %.1000s", method, path, got.status, got.body)
		}
		return err
	})
	return got, err
}

func (m manager) send(ctx context.Context, tenant int, key string, body event.Body) error {
	got, err := m.do(ctx, m.tenants.tokens[tenant], http.MethodPost, "/contexts/"+m.name+"/events", key, event.New(body))
	if err != nil {
		return err
	}
	return got.want(http.StatusAccepted, "send "+key)
}

func (m manager) events(ctx context.Context, tenant int, name string) ([]event.Event, error) {
	got, err := m.do(ctx, m.tenants.tokens[tenant], http.MethodGet, "/contexts/"+name+"/events?limit=1000", "", nil)
	if err == nil {
		err = got.want(http.StatusOK, "read the events of "+name)
	}
	var page struct{ Events []event.Event }
	if err == nil {
		err = json.Unmarshal(got.body, &page)
	}
	return page.Events, err
}

// awaitAnswer returns the log of a context when the message with a purpose has an answer.
func (m manager) awaitAnswer(ctx context.Context, tenant int, name, purpose string) (log []event.Event, err error) {
	err = retry(ctx, attemptTimeout, func(ctx context.Context) error {
		if log, err = m.events(ctx, tenant, name); err != nil {
			return err
		}
		p, isRecorded := progress{}, false
		for _, e := range log {
			p.add(e)
			body, ok := e.Body.(event.UserMessage)
			isRecorded = isRecorded || ok && body.Content == m.message(tenant, purpose)
		}
		if !isRecorded || !p.isIdle() {
			return fmt.Errorf("%s of %s has no answer:\n%s", name, tenantNames[tenant], tail(log))
		}
		return nil
	})
	return log, err
}

func (m manager) setDetails(ctx context.Context) error {
	details := event.SetDetails{Title: new("The title of " + m.name), Labels: map[string]string{"team": "soak"}}
	if err := m.send(ctx, 0, "details", details); err != nil {
		return err
	}
	return retry(ctx, attemptTimeout, func(ctx context.Context) error { // no worker may have recorded them yet
		got, err := m.do(ctx, m.tenants.tokens[0], http.MethodGet, "/contexts/"+m.name+"/state", "", nil)
		var state wire.State
		if err == nil {
			err = json.Unmarshal(got.body, &state)
		}
		if err == nil && (state.Details.Title != *details.Title || !maps.Equal(state.Details.Labels, details.Labels)) {
			err = fmt.Errorf("the state has the details %s, want %s", encode(state.Details), encode(details))
		}
		return err
	})
}

// fork creates a fork, and repeats the request.
func (m manager) fork(ctx context.Context, log []event.Event) (fork string, err error) {
	path, at := "/contexts/"+m.name+"/fork", log[len(log)-1].ID
	body := map[string]any{"at": at, "events": event.New(event.UserMessage{Content: m.message(0, "fork")})}
	for n := range 3 {
		got, err := m.do(ctx, m.tenants.tokens[0], http.MethodPost, path, "fork", body)
		if err == nil {
			err = got.want(http.StatusCreated, "fork")
		}
		var created client.Branched
		if err == nil {
			err = json.Unmarshal(got.body, &created)
		}
		if err != nil {
			return "", err
		}
		if n > 0 && created.ContextName != fork {
			return "", fmt.Errorf("the repeated request created %s in addition to %s", created.ContextName, fork)
		}
		fork = created.ContextName
	}
	got, err := m.do(ctx, m.tenants.tokens[0], http.MethodPost, path, "fork", map[string]any{"at": at})
	if err == nil {
		err = got.want(http.StatusUnprocessableEntity, "fork with another body")
	}
	if err != nil {
		return "", err
	}
	got, err = m.do(ctx, m.tenants.tokens[0], http.MethodGet, "/contexts/"+m.name+"/branches", "", nil)
	var branches client.Branches
	if err == nil {
		err = json.Unmarshal(got.body, &branches)
	}
	if err == nil && (len(branches.Contexts) != 2 || branches.Contexts[1].ContextName != fork || branches.Contexts[1].ForkedFrom != at) {
		err = fmt.Errorf("the branches are %s, want %s from %s", got.body, fork, at)
	}
	m.counts.add("forked", 1)
	return fork, err
}

// isDenied checks that invalid credentials reach nothing, and that the other tenant does not reach the context and its fork.
func (m manager) isDenied(ctx context.Context, fork string) error {
	requests := []struct {
		method, path string
		body         any
	}{
		{http.MethodGet, "/contexts/" + fork + "/events", nil}, {http.MethodGet, "/contexts/" + fork + "/state", nil},
		{http.MethodGet, "/contexts/" + fork + "/branches", nil}, {http.MethodPost, "/contexts/" + fork + "/interrupt", nil},
		{http.MethodPost, "/contexts/" + fork + "/fork", map[string]any{"at": event.FormatID(fork, 1)}},
		{http.MethodDelete, "/contexts/" + fork + "?purge=true", nil},
	}
	check := func(token string, status int) error {
		for _, r := range requests {
			got, err := m.do(ctx, token, r.method, r.path, "denied", r.body)
			if err == nil {
				err = got.want(status, r.method+" "+r.path)
			}
			if err != nil {
				return err
			}
		}
		m.counts.add("denied", len(requests))
		return nil
	}
	for _, token := range m.tenants.invalid {
		if err := check(token, http.StatusUnauthorized); err != nil {
			return err
		}
	}
	if err := check(m.tenants.tokens[1], http.StatusNotFound); err != nil {
		return err
	}
	for _, path := range []string{"/contexts?limit=1000", "/contexts/" + m.name + "/events", "/contexts/" + m.name + "/transcript"} {
		got, err := m.do(ctx, m.tenants.tokens[1], http.MethodGet, path, "", nil)
		if err == nil {
			err = got.want(http.StatusOK, path)
		}
		if err == nil && (bytes.Contains(got.body, []byte(fork)) || bytes.Contains(got.body, []byte("-"+tenantNames[0]+"-"))) {
			err = fmt.Errorf("%s shows %s something of %s: %s", path, tenantNames[1], tenantNames[0], got.body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// purge deletes the context, and checks that it is gone everywhere.
func (m manager) purge(ctx context.Context) error {
	token, path := m.tenants.tokens[0], "/contexts/"+m.name
	got, err := m.do(ctx, token, http.MethodDelete, path+"?purge=true", "", nil)
	if err == nil {
		err = got.want(http.StatusAccepted, "purge")
	}
	if err != nil {
		return err
	}
	err = retry(ctx, attemptTimeout, func(ctx context.Context) error {
		got, err := m.do(ctx, token, http.MethodGet, path+"/deletion", "", nil)
		if err == nil && !strings.Contains(string(got.body), `"endedAt"`) {
			err = fmt.Errorf("the deletion has not ended: %d %s", got.status, got.body)
		}
		return err
	})
	for _, read := range []string{"/events", "/state", "/transcript", "/branches"} {
		if err == nil {
			got, err = m.do(ctx, token, http.MethodGet, path+read, "", nil)
		}
		if err == nil {
			err = got.want(http.StatusNotFound, "read "+read+" of the deleted context")
		}
	}
	if err != nil {
		return err
	}
	full := event.JoinTenant(tenantNames[0], m.name)
	err = retry(ctx, attemptTimeout, func(ctx context.Context) error {
		store, err := blobs.OpenExisting(ctx, m.BlobURL(), sdkclient.DefaultNamespace)
		if err != nil {
			return err
		}
		defer store.Close()
		isStored, err := archive.New(store).IsStored(ctx, full)
		if err == nil && isStored {
			err = errors.New("the blob store has something of the deleted context")
		}
		return err
	})
	if err != nil {
		return err
	}
	m.counts.add("purged", 1)
	return retry(ctx, attemptTimeout, func(ctx context.Context) error { // Temporal lists a deleted run for a moment
		_, err := m.Temporal.DescribeWorkflowExecution(ctx, wire.WorkflowID(full), "")
		if !errors.As(err, new(*serviceerror.NotFound)) {
			return fmt.Errorf("the server has the deleted context: %w", err)
		}
		got, err := m.do(ctx, token, http.MethodGet, "/contexts?limit=1000", "", nil)
		if err == nil && bytes.Contains(got.body, []byte(`"contextName":"`+m.name+`"`)) {
			err = fmt.Errorf("the list has the deleted context: %s", got.body)
		}
		return err
	})
}
