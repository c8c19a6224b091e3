package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/client"
	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
)

func TestLimitsCombineContextsAndMaxBody(t *testing.T) {
	const mb = 1_000_000
	for _, test := range []struct {
		name           string
		context        client.Limits
		maxBody        int64
		one, other, in int64
	}{
		{"without a blob store", client.Limits{Attachment: mb, OtherAttachment: mb, Attachments: mb + 1}, 0, mb, mb, mb + 1},
		{"with one", client.Limits{Attachment: 20 * mb, OtherAttachment: mb}, 32 * mb, 20 * mb, mb, 23_950_848},
		{"a short body", client.Limits{Attachment: 20 * mb, OtherAttachment: mb}, mb, 700_848, 700_848, 700_848},
		{"a tiny body", client.Limits{Attachment: mb, OtherAttachment: mb, Attachments: mb}, 1, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := serve(t, fakeClient{log: newLog(), limits: test.context}, gateway.Options{MaxBody: test.maxBody})
			var got struct {
				client.Limits
				MediaTypes []string
			}
			require.NoError(t, json.Unmarshal([]byte(w.do(http.MethodGet, "/limits", "").body), &got))
			require.Equal(t, client.Limits{Attachment: test.one, OtherAttachment: test.other, Attachments: test.in}, got.Limits)
			require.Equal(t, event.MediaTypes(), got.MediaTypes)
		})
	}
}

func TestCrossOriginRequestsAreRejected(t *testing.T) {
	log := newLog()
	w := serve(t, fakeClient{log: log}, gateway.Options{Hosts: []string{"chronicle.example:8443"}})
	for _, test := range []struct {
		name   string
		header []string
		status int
	}{
		{"an IPv4 address", nil, 202},
		{"localhost", []string{"Host", "localhost:8080"}, 202},
		{"an IPv6 address", []string{"Host", "[::1]:8080"}, 202},
		{"an allowed name", []string{"Host", "Chronicle.example"}, 202},
		{"another name with this address", []string{"Host", "attacker.example:8080"}, 421},
		{"a name that starts like an address", []string{"Host", "127.0.0.1.attacker.example"}, 421},
		{"the same origin", []string{"Origin", w.server.URL}, 202},
		{"the same origin by Sec-Fetch-Site", []string{"Sec-Fetch-Site", "same-origin", "Origin", "null"}, 202},
		{"another origin", []string{"Origin", "https://attacker.example"}, 403},
		{"another port of this machine", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"another site by Sec-Fetch-Site", []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(log.sent)
			got := w.do(http.MethodPost, "/contexts/demo/events", hello, test.header...)
			require.Equal(t, test.status, got.status, got.body)
			require.Equal(t, test.status == 202, len(log.sent) > before)
			require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
		})
	}
}

func TestTheRateOfAnAddressIsLimited(t *testing.T) {
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{Rate: 1e-9, Burst: 2})
	for _, status := range []int{200, 200, 429, 429} {
		require.Equal(t, status, w.do(http.MethodGet, "/contexts", "").status)
	}
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/readyz", "").status, "health checks are exempt")
}

func TestStreamsAreLimitedPerAddressAndInTotal(t *testing.T) {
	w := serve(t, fakeClient{log: newLog(messages(1)...)}, gateway.Options{
		Streams: 3, StreamsPerAddress: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	rejected := func(from string, status int) {
		t.Helper()
		got := w.do(http.MethodGet, "/contexts/demo/events", "", "Accept", "text/event-stream", "X-Forwarded-For", from)
		require.Equal(t, status, got.status, got.body)
		require.Contains(t, got.body, "urn:chronicle:problem:streams")
		require.Equal(t, "1", got.header.Get("Retry-After"))
	}
	w.view("/contexts/demo/events", "X-Forwarded-For", "192.0.2.1")
	w.view(transcriptPath, "X-Forwarded-For", "192.0.2.1")
	rejected("192.0.2.1", http.StatusTooManyRequests)
	w.view("/contexts/demo/events", "X-Forwarded-For", "192.0.2.2")
	rejected("192.0.2.2", http.StatusServiceUnavailable)
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/contexts/demo/events", "", "X-Forwarded-For", "192.0.2.1").status,
		"requests other than streams are not limited")
}

func TestAClosedStreamFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(fakeClient{log: newLog(messages(1)...)}, gateway.Options{Streams: 2, StreamsPerAddress: 1})
		defer g.Close()
		for range 5 {
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan int)
			open := func() { left <- ask(ctx, g, http.MethodGet, transcriptPath, "", "Accept", "text/event-stream").Code }
			go open()
			synctest.Wait()
			go open()
			require.Equal(t, http.StatusTooManyRequests, <-left)
			leave()
			require.Equal(t, http.StatusOK, <-left)
		}
	})
}

func TestClientsBehindAProxyHaveSeparateRates(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	for _, test := range []struct {
		name          string
		proxies       []netip.Prefix
		first, second string // X-Forwarded-For
		same          bool
	}{
		{"two clients", proxies, "192.0.2.1", "192.0.2.2", false},
		{"one client", proxies, "192.0.2.1", "192.0.2.1", true},
		{"behind two proxies", proxies, "192.0.2.1, 10.0.0.1", "192.0.2.2,10.0.0.1", false},
		{"a forged first entry", proxies, "192.0.2.8, 192.0.2.1", "192.0.2.9, 192.0.2.1", true},
		{"a forged entry and proxy", proxies, "192.0.2.8, 10.0.0.9, 192.0.2.1", "192.0.2.9, 10.0.0.9, 192.0.2.1", true},
		{"an entry that is not an address", proxies, "192.0.2.8, unknown, 10.0.0.1", "192.0.2.9, unknown, 10.0.0.1", true},
		{"two ports", proxies, "192.0.2.1:1000", "192.0.2.1:2000", true},
		{"one IPv6 network", proxies, "2001:db8::1", "[2001:db8::2]:443", true},
		{"two IPv6 networks", proxies, "2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"an IPv4-mapped address", proxies, "192.0.2.1", "::ffff:192.0.2.1", true},
		{"proxies only", proxies, "10.0.0.1", "10.0.0.2", false},
		{"no header", proxies, "", "", true},
		{"an untrusted proxy", proxies[1:], "192.0.2.1", "192.0.2.2", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := serve(t, fakeClient{log: newLog()}, gateway.Options{Rate: 1e-9, Proxies: test.proxies})
			second := map[bool]int{false: http.StatusOK, true: http.StatusTooManyRequests}[test.same]
			require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/contexts", "", "X-Forwarded-For", test.first).status)
			require.Equal(t, second, w.do(http.MethodGet, "/contexts", "", "X-Forwarded-For", test.second).status)
		})
	}
}
