package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

func TestContextNames(t *testing.T) {
	for _, name := range []string{"a", "0", "demo", "A.b_c-9", strings.Repeat("x", event.MaxContextName)} {
		require.NoError(t, event.ValidateContextName(name), name)
	}
	for _, name := range []string{
		"", ".a", "_a", "-a", "de mo", "a:b", "ä", "a\x00", "a\n", strings.Repeat("x", event.MaxContextName+1),
	} {
		require.Error(t, event.ValidateContextName(name), "%q", name)
	}
	require.EqualError(t, event.ValidateContextName("de mo"),
		`context "de mo": a name has 1-128 of A-Z a-z 0-9 . _ -, first a letter or digit`)
	require.NotContains(t, event.ValidateContextName("sk-0123456789abc def").Error(), "0123456789abc")
}

func TestNamesOfTenants(t *testing.T) {
	longest := strings.Repeat("t", event.MaxTenant)
	for _, name := range []string{"acme/demo", "A.b_c-9/0", longest + "/" + strings.Repeat("x", event.MaxContextName)} {
		require.NoError(t, event.ValidateContextName(name), name)
		require.Error(t, event.ValidateLocalName(name), name)
	}
	for _, name := range []string{"/demo", "acme/", "/", "_/demo", "a/b/c", "acme//demo", "acme/_", longest + "t/demo"} {
		require.Error(t, event.ValidateContextName(name), name)
	}
	require.EqualError(t, event.ValidateTenant("ac me"), `tenant "ac me": a tenant has 1-64 of A-Z a-z 0-9 . _ -, first a letter or digit`)
	require.EqualError(t, event.ValidateContextName("a/b/c"), `context "b/c": a name has 1-128 of A-Z a-z 0-9 . _ -, first a letter or digit`)
	rapid.Check(t, func(t *rapid.T) {
		name := eventtest.ContextName().Draw(t, "name")
		require.NoError(t, event.ValidateContextName(name))
		tenant, local := event.CutTenant(name)
		require.Equal(t, name, event.JoinTenant(tenant, local))
		require.Equal(t, event.FormatID(local, 7), event.FormatID(name, 7), "ids omit the tenant")
		require.Equal(t, event.FormatRequestID(local, 7), event.FormatRequestID(name, 7))
		require.Equal(t, event.New(event.Note{}).MovedTo(local), event.New(event.Note{}).MovedTo(name))
	})
}

func TestEventIDs(t *testing.T) {
	require.Equal(t, "demo:0001", event.FormatID("demo", 1))
	require.Equal(t, "demo:12345", event.FormatID("demo", 12345))
	require.Equal(t, "demo:0001", event.IDBefore("demo", 2))
	require.Empty(t, event.IDBefore("demo", 1))
	for _, id := range []string{
		"", "demo", ":0001", "demo:", "demo:1", "demo:001", "demo:0000", "demo:00001", "demo:-001", "demo:+001",
		"demo:0x01", "demo:1_00", "demo: 001", "demo:r0001", "demo:99999999999999999999",
	} {
		require.Zero(t, event.Counter(id), id)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntMin(1).Draw(t, "n")
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`).Draw(t, "name")
		require.NoError(t, event.ValidateContextName(name))
		require.Equal(t, n, event.Counter(event.FormatID(name, n)))
		require.Equal(t, n, event.RequestNumber(event.FormatRequestID(name, n)))
		require.Zero(t, event.Counter(event.FormatRequestID(name, n)))
		require.Zero(t, event.RequestNumber(event.FormatID(name, n)))
	})
}

func TestRequestIDs(t *testing.T) {
	require.Equal(t, "demo:r0001", event.FormatRequestID("demo", 1))
	for _, id := range []string{"", "demo:0001", ":r0001", "demo:r1", "demo:r0000", "demo:r+001", "demo:r-001", "r0001"} {
		require.Zero(t, event.RequestNumber(id), id)
	}
}

func TestRequestOfReturnsTheRequestIDInTheJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := eventtest.Body().Draw(t, "body")
		data, err := json.Marshal(body)
		require.NoError(t, err)
		var said struct {
			RequestID string `json:"requestId"`
		}
		require.NoError(t, json.Unmarshal(data, &said))
		require.Equal(t, said.RequestID, event.RequestOf(body))
		require.True(t, said.RequestID != "" || !body.Tag().EndsRequest(), "an event that ends a request must name it")
	})
}
