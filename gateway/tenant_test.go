package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
)

// claims are credentials that say who a client is: "Bearer TENANT ROLE".
type claims struct{}

func (claims) Authenticate(r *http.Request) (auth.Identity, error) {
	words := strings.Fields(r.Header.Get("Authorization"))
	if len(words) != 3 {
		return auth.Identity{}, auth.ErrUnauthenticated
	}
	return auth.Identity{Subject: "ann@" + words[1], Tenant: words[1], Roles: []auth.Role{auth.Role(words[2])}}, nil
}

// eachTenant has a client for each tenant.
type eachTenant map[string]fakeClient

func (c eachTenant) Tenant(name string) (fakeClient, error) {
	of, ok := c[name]
	if !ok {
		return of, errors.New("no such tenant")
	}
	return of, nil
}

func (c eachTenant) Live() bool                     { return true }
func (c eachTenant) Ping(context.Context) error     { return nil }
func (c eachTenant) Limits() (limits client.Limits) { return limits }

// by returns the header of a credential.
func by(tenant string, role auth.Role) []string {
	return []string{"Authorization", "Bearer " + tenant + " " + string(role)}
}

func TestEachOperationRequiresItsRole(t *testing.T) {
	w := serve(t, eachTenant{"acme": {log: newLog(event.UserMessage{Content: "Hello"})}}, gateway.Options{Auth: claims{}})
	everyone := []auth.Role{auth.RoleRead, auth.RoleWrite, auth.RoleApprove, auth.RoleAdmin}
	admitted := map[string][]auth.Role{
		"listContexts": everyone, "searchMessages": everyone, "readEvents": everyone, "readState": everyone, "readTranscript": everyone, "readAttachment": everyone, "readLimits": everyone, "readDeletion": everyone,
		"readBranches": everyone, "readTurn": everyone, "followContexts": everyone, "forkContext": {auth.RoleWrite, auth.RoleAdmin}, "shareContext": {auth.RoleWrite, auth.RoleAdmin},
		"sendEvents": everyone[1:], "interrupt": {auth.RoleWrite, auth.RoleAdmin}, "closeContext": {auth.RoleWrite, auth.RoleAdmin},
		"healthy": nil, "ready": nil, "describe": nil, "readSession": nil, "signIn": nil, "signOut": nil, "startSignIn": nil, "finishSignIn": nil,
	}
	spec := readSpec(t)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			roles, ok := admitted[operation.OperationID]
			require.True(t, ok, "say who may %s", operation.OperationID)
			for _, role := range append(everyone, "none") {
				got := w.do(method, strings.NewReplacer("{name}", "demo", "{id}", "demo:0001").Replace(path), "", by("acme", role)...)
				may := roles == nil
				for _, r := range roles {
					may = may || r == role
				}
				require.Equal(t, !may, got.status == http.StatusForbidden, "%s %s: %s", role, operation.OperationID, got.body)
				if !may {
					require.Contains(t, got.body, "urn:chronicle:problem:forbidden")
					require.Contains(t, got.body, "the credential lacks the role ")
				}
			}
		}
	}
}

func TestApprovalsNameWhoDecided(t *testing.T) {
	const decision = `{"_tag":"ApprovalDecidedEvent","decision":"approve","decidedBy":"the boss"}`
	for _, test := range []struct {
		role   auth.Role
		body   string
		status int
		lacks  string
	}{
		{auth.RoleApprove, decision, 202, ""},
		{auth.RoleAdmin, "[" + hello + "," + decision + "]", 202, ""},
		{auth.RoleWrite, hello, 202, ""},
		{auth.RoleWrite, decision, 403, "approve"},
		{auth.RoleApprove, hello, 403, "write"},
		{auth.RoleApprove, "[" + decision + "," + hello + "]", 403, "write"},
		{auth.RoleRead, hello, 403, "write or approve"},
	} {
		l := newLog(event.UserMessage{Content: "Hello"})
		w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
		got := w.do(http.MethodPost, "/contexts/demo/events", test.body, by("acme", test.role)...)
		require.Equal(t, test.status, got.status, got.body)
		if test.status != http.StatusAccepted {
			require.Contains(t, got.body, `"the credential lacks the role `+test.lacks+`"`)
			require.Empty(t, l.sent)
			continue
		}
		for _, e := range l.sent[0] {
			if decided, ok := e.Body.(event.ApprovalDecided); ok {
				require.Equal(t, "ann@acme", decided.DecidedBy)
			}
		}
	}
	l := newLog(event.UserMessage{Content: "Hello"})
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/events", decision).status)
	require.Equal(t, "the boss", l.sent[0][0].Body.(event.ApprovalDecided).DecidedBy, "without authentication, the client says it")
}

func TestClientsOfATenantCannotSayWhatIsTheOperators(t *testing.T) {
	note, err := json.Marshal("<" + event.AbridgedNote(102, 1, 101, strings.TrimPrefix(ref, event.BlobPrefix)) + ">")
	require.NoError(t, err)
	abridged, err := event.New(event.ToolResult{ToolCallID: "call_0", Value: note}).MarshalJSON()
	require.NoError(t, err)
	for body, problem := range map[string]string{
		`{"_tag":"SetRequestSettingsEvent","labels":{"tenant":"other","team":"a"}}`:                                         "SetRequestSettingsEvent.labels: the label tenant is that of the credential (leave it out)",
		`{"_tag":"UserMessageEvent","content":"Hi","settings":{"labels":{"tenant":"acme"}}}`:                                "UserMessageEvent.labels: the label tenant is that of the credential (leave it out)",
		`{"_tag":"AnswerRequestedEvent","settings":{"labels":{"tenant":"acme"}}}`:                                           "AnswerRequestedEvent.labels: the label tenant is that of the credential (leave it out)",
		`[` + hello + `,{"_tag":"SetRequestSettingsEvent","labels":{"tenant":""}}]`:                                         "SetRequestSettingsEvent.labels: the label tenant",
		`{"_tag":"FileAttachmentEvent","source":{"type":"blob","ref":"` + ref + `"},"mediaType":"image/png","size":1}`:      "FileAttachmentEvent.source.ref: references to stored bytes are not accepted from clients (send the bytes)",
		`{"_tag":"FileAttachmentEvent","source":{"type":"blob","ref":"blob:` + ref + `"},"mediaType":"image/png","size":1}`: "FileAttachmentEvent.source.ref: references to stored bytes",
		string(abridged): "ToolResultEvent.value: references to stored bytes",
		`{"_tag":"SetDetailsEvent","title":"Trip","owner":"ann@acme"}`: "SetDetailsEvent.owner: the owner is the subject of the credential that created the context (leave it out)",
	} {
		l := newLog()
		w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
		got := w.do(http.MethodPost, "/contexts/demo/events", body, by("acme", auth.RoleAdmin)...)
		require.Equal(t, http.StatusUnprocessableEntity, got.status)
		require.Contains(t, got.body, problem)
		require.Empty(t, l.sent)
		got = w.do(http.MethodPost, "/contexts/demo/fork", `{"at":"demo:0001","events":`+body+`}`, by("acme", auth.RoleAdmin)...)
		require.Equal(t, http.StatusUnprocessableEntity, got.status)
		require.Contains(t, got.body, problem)
		w = serve(t, fakeClient{log: l}, gateway.Options{})
		require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/events", body).status, "without authentication")
	}
}

var ref = event.RefOf([]byte("of another tenant"))

func TestADecisionCreatesNoContext(t *testing.T) {
	const decision = `{"_tag":"ApprovalDecided","decision":"approve"}`
	for _, role := range []auth.Role{auth.RoleApprove, auth.RoleAdmin} {
		l := newLog()
		w := serve(t, eachTenant{"acme": {log: l}}, gateway.Options{Auth: claims{}})
		got := w.do(http.MethodPost, "/contexts/demo/events", decision, by("acme", role)...)
		require.Equal(t, http.StatusNotFound, got.status, got.body)
		require.Contains(t, got.body, "urn:chronicle:problem:no-context")
		require.Empty(t, l.sent)
	}
	l := newLog()
	w := serve(t, fakeClient{log: l}, gateway.Options{})
	require.Equal(t, http.StatusNotFound, w.do(http.MethodPost, "/contexts/demo/events", "["+decision+"]").status)
	require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/contexts/demo/events", "["+hello+","+decision+"]").status, "the message creates it")
}

func TestTenantsShareNothing(t *testing.T) {
	of := func(text string) fakeClient {
		return fakeClient{log: newLog(event.UserMessage{Content: text}), list: []client.Summary{{ContextName: text}}}
	}
	w := serve(t, eachTenant{"acme": of("road"), "other": of("runner")}, gateway.Options{Auth: claims{}})
	for range 2 { // from caches, the second time
		for tenant, text := range map[string]string{"acme": "road", "other": "runner"} {
			for _, path := range []string{"/contexts", "/contexts/demo/events", "/contexts/demo/transcript"} {
				require.Contains(t, w.do(http.MethodGet, path, "", by(tenant, auth.RoleRead)...).body, text, path)
			}
			v := w.view("/contexts/demo/events", by(tenant, auth.RoleRead)...)
			require.Contains(t, v.next().data, text)
			v.leave()
		}
	}
	got := w.do(http.MethodGet, "/contexts", "", by("A/B", auth.RoleAdmin)...)
	require.Equal(t, http.StatusForbidden, got.status)
	require.Contains(t, got.body, "the credential names an invalid tenant: no such tenant")
}

func TestRatesAndStreamsOfATenantAreLimited(t *testing.T) {
	both := eachTenant{"acme": {log: newLog(messages(1)...)}, "other": {log: newLog(messages(1)...)}}
	w := serve(t, both, gateway.Options{Auth: claims{}, TenantRate: 1e-9})
	for _, test := range []struct {
		tenant string
		status int
	}{{"acme", 200}, {"acme", 429}, {"other", 200}, {"acme", 429}, {"other", 429}} {
		require.Equal(t, test.status, w.do(http.MethodGet, "/contexts", "", by(test.tenant, auth.RoleRead)...).status)
	}
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/readyz", "").status)

	w = serve(t, both, gateway.Options{Auth: claims{}, StreamsPerTenant: 1})
	v := w.view("/contexts/demo/events", by("acme", auth.RoleRead)...)
	got := w.do(http.MethodGet, transcriptPath, "", append(by("acme", auth.RoleRead), "Accept", "text/event-stream")...)
	require.Equal(t, http.StatusTooManyRequests, got.status)
	require.Contains(t, got.body, "a tenant may have 1 open streams")
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, transcriptPath, "", by("acme", auth.RoleRead)...).status, "other requests are not limited")
	w.view("/contexts/demo/events", by("other", auth.RoleRead)...)
	v.leave()
	require.Eventually(t, func() bool {
		response, err := w.server.Client().Do(w.stream(t.Context(), transcriptPath, by("acme", auth.RoleRead)...))
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, testTimeout, 10*time.Millisecond)
}
