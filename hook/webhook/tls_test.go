package webhook_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/hook"
)

func TestTheCertificateOfAnEndpointIsVerified(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"refuse":"off topic"}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	hooks, err := read(t, "[[hooks]]\nname = \"guard\"\nurl = \""+server.URL+"\"\nsecret = \"env:SECRET\"\nstages = [\"before\"]\nretries = 0")
	require.NoError(t, err)

	verdict, err := hooks[0].Before(t.Context(), request)
	require.ErrorContains(t, err, "certificate")
	require.Empty(t, verdict)

	untrusting := http.DefaultTransport
	http.DefaultTransport = server.Client().Transport
	t.Cleanup(func() { http.DefaultTransport = untrusting })
	verdict, err = hooks[0].Before(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, hook.Refuse("off topic"), verdict)
}
