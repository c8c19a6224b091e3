package llm_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/llm"
	"github.com/seed-9ed7edd4/chronicle/llm/llmtest"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

// TestOtherServersCannotBeReadThroughErrors sends requests to other kinds of servers, at a URL
// named by an event. Errors repeat none of their output.
func TestOtherServersCannotBeReadThroughErrors(t *testing.T) {
	const private = "s3cr3t-page"
	sse := "text/event-stream"
	steps := map[string]llmtest.Step{
		"a page":                        llmtest.Raw("text/html", "<html>"+private),
		"an error page":                 llmtest.Status(500, "<html>"+private),
		"a long page":                   llmtest.Status(404, strings.Repeat(private, 100_000)),
		"a long page with status 200":   llmtest.Raw("text/plain", strings.Repeat(private+"\n", 100_000)),
		"other JSON":                    llmtest.Raw("application/json", `{"password":"`+private+`"}`),
		"JSON with a message":           llmtest.Raw("application/json", `{"message":"`+private+`"}`),
		"an error object":               llmtest.Error(403, "denied", private),
		"an unknown code":               llmtest.Error(403, private, ""),
		"an array of errors":            llmtest.Status(400, `[{"error":{"message":"`+private+`"}}]`),
		"an error object in a stream":   llmtest.Raw(sse, `data: {"error":{"message":"`+private+`"}}`+"\n\n"),
		"an event stream of other data": llmtest.Raw(sse, "data: "+private+"\n\n"),
		"events of another kind":        llmtest.Raw(sse, `data: {"choices":"`+private+`"}`+"\n\n"),
		"a type":                        llmtest.Raw("x/"+private, "x"),
		"a redirect":                    llmtest.Status(302, private).Header("Location", "http://10.0.0.1/"+private),
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Start(t, step)
			err := probe(t, model.URL)
			require.NotContains(t, err.Error(), private)
			require.Less(t, len(err.Error()), 300)
			if name == "an error object" || name == "an array of errors" {
				require.ErrorContains(t, err, "; the response is not shown, since the worker's operator configured no provider for "+model.URL)
			}
		})
	}
	t.Run("a banner", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				fmt.Fprintf(conn, "SSH-2.0-%s\r\n", private)
				_ = conn.Close()
			}
		}()
		err = probe(t, "http://"+listener.Addr().String())
		require.NotContains(t, err.Error(), private)
		require.NotContains(t, err.Error(), "SSH")
	})
}

// probe sends a request to a URL named by an event and returns the error.
func probe(t *testing.T, url string) error {
	t.Helper()
	adapter := llm.New(llm.Options{AllowLoopback: true})
	target, err := adapter.Resolve(reducer.ProviderConfig{ProviderID: "mine", Model: "m", BaseURL: url})
	require.NoError(t, err)
	result, err := target.Stream(within(t), hello, nil)
	require.Error(t, err)
	require.Empty(t, result.Text)
	return err
}

// Errors of configured providers repeat error objects and plain texts, and no other responses.
func TestErrorsRepeatNoPagesAndNoOtherJSON(t *testing.T) {
	for name, step := range map[string]llmtest.Step{
		"a page":     llmtest.Status(502, "<html>s3cr3t-page"),
		"other JSON": llmtest.Status(500, `{"stack":"s3cr3t-page"}`),
		"a success":  llmtest.Raw("application/json", `{"stack":"s3cr3t-page"}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := target(t, llmtest.Start(t, step)).Stream(within(t), hello, nil)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "s3cr3t-page")
		})
	}
}

func TestFinishReasonIsAWord(t *testing.T) {
	for given, want := range map[string]string{"stop": "stop", "MAX_TOKENS": "length", strings.Repeat("x", 1000): "other", `a\u001b[2J`: "other"} {
		result, err := target(t, llmtest.Start(t, llmtest.Answer("Hi").Finish(given))).Stream(within(t), hello, nil)
		require.NoError(t, err)
		require.Equal(t, want, result.FinishReason)
	}
}

// asProxied makes the test binary print the proxy that the client uses for a URL. The library
// reads the environment only once per process.
const asProxied = "CHRONICLE_TEST_PROXY_OF"

func TestProxiesSeeNoKey(t *testing.T) {
	if raw := os.Getenv(asProxied); raw != "" {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		proxy, err := llm.NewHTTPClient().Transport.(*http.Transport).Proxy(&http.Request{URL: u})
		require.NoError(t, err)
		fmt.Printf("proxy=%v\n", proxy)
		return
	}
	for raw, want := range map[string]string{
		"http://model.example/v1":  "proxy=<nil>\n",
		"https://model.example/v1": "proxy=http://proxy.example:3128\n",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProxiesSeeNoKey$")
		cmd.Env = []string{asProxied + "=" + raw, "HTTP_PROXY=http://proxy.example:3128", "HTTPS_PROXY=http://proxy.example:3128", "ALL_PROXY=http://proxy.example:3128"}
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Contains(t, string(out), want)
	}
}
