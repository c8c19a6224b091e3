package gateway_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/gateway"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth"
	"github.com/seed-9ed7edd4/chronicle/gateway/auth/authtest"
	"github.com/seed-9ed7edd4/chronicle/gateway/page"
	"github.com/seed-9ed7edd4/chronicle/internal/browsertest"
)

func TestThePageSignsInWithATokenAndOut(t *testing.T) {
	browser := browsertest.Start(t)
	l := newLog(event.UserMessage{Content: "Hello"})
	w, file := guarded(t, l, gateway.Options{})
	token, id := newToken(t, file, ann, 0)
	other, _ := newToken(t, file, auth.Identity{Subject: "bob", Roles: ann.Roles}, 0)
	tab := browser.Open(w.server.URL + "/#demo")
	tab.Await(`!document.querySelector("#sign-in").hidden && document.activeElement.id === "token"`)
	require.Empty(t, visibleIDs(tab, "nav, main"), "nothing else is shown")
	tab.Type("#token", "chr_wrong\r")
	tab.Await(`document.querySelector("#sign-in-note").innerText === "This token is unknown, revoked or expired."`)
	tab.Do(`
		const fetched = window.fetch;
		window.fetch = async () => { window.fetch = fetched; return new Response("", { status: 429 }) };
		document.querySelector("#token").value = ""`)
	tab.Type("#token", "chr_wrong\r")
	tab.Await(`document.querySelector("#sign-in-note").innerText === "The gateway responds with 429. Please try again later."`)
	tab.Do(`document.querySelector("#token").value = ""`)
	tab.Type("#token", " "+token+"\r")
	tab.Await(`document.querySelector(".user-message")?.innerText.includes("Hello")`)
	require.Equal(t, []string{"ann"}, tab.Text("#person-name"))
	l.record(event.AssistantMessage{Content: "streamed with the cookie"})
	tab.Await(`document.querySelector(".assistant-message")?.innerText.includes("streamed")`)
	var readable string
	tab.Eval(`document.cookie`, &readable)
	require.Empty(t, readable)
	tab.Type("#text", "Hi\r")
	tab.Await(`[...document.querySelectorAll(".user-message")].at(-1).innerText.includes("Hi")`)

	tab.Type("#text", "a draft")
	require.NoError(t, file.Revoke(id))
	tab.Await(`!document.querySelector("#sign-in").hidden`) // the list is refused
	again, _ := newToken(t, file, ann, 0)
	tab.Type("#token", again+"\r")
	tab.Await(`document.querySelector("#text")?.value === "a draft" && document.querySelector("#sign-in").hidden`)

	tab.Click("#sign-out")
	tab.Await(`!document.querySelector("#sign-in").hidden`)
	tab.Type("#token", other+"\r")
	tab.Await(`document.querySelector("#person-name").innerText === "bob" && document.querySelector(".user-message")`)
	tab.Await(`document.querySelector("#text").value === ""`) // the draft was ann's
}

func visibleIDs(tab *browsertest.Tab, selector string) (ids []string) {
	tab.Eval(`[...document.querySelectorAll("`+selector+`")].filter((e) => e.checkVisibility()).map((e) => e.id)`, &ids)
	return ids
}

func TestThePageSignsInAtTheProvider(t *testing.T) {
	browser := browsertest.Start(t)
	p := authtest.Start(t, map[string]any{"sub": "ann", "roles": []string{"chronicle-admin"}})
	service, err := auth.New(auth.Options{OIDC: auth.NewOIDC(auth.OIDCOptions{
		Issuer: p.Issuer, ClientID: authtest.ClientID, ClientSecret: authtest.ClientSecret, Mapping: auth.OIDCMapping,
	})})
	require.NoError(t, err)
	w := serve(t, fakeClient{log: newLog(event.UserMessage{Content: "Hello"})}, gateway.Options{Page: page.Handler(), Auth: service, SignIn: service})
	tab := browser.Open(w.server.URL + "/?sign-in=denied#demo")
	tab.Await(`document.querySelector("#sign-in-note").innerText === "The provider did not sign you in." && location.search === ""`)
	require.Equal(t, []string{"provider"}, visibleIDs(tab, "#provider, #with-token"))
	tab.Click("#provider")
	tab.Await(`document.title === "Provider"`)
	tab.Click("#approve")
	tab.Await(`document.querySelector(".user-message")?.innerText.includes("Hello")`)
	require.Equal(t, []string{"ann"}, tab.Text("#person-name"))
	var at string
	tab.Eval(`location.pathname + location.search + location.hash`, &at)
	require.Equal(t, "/#demo", at)
}

func TestThePageOfAProxySendsPeopleThere(t *testing.T) {
	browser := browsertest.Start(t)
	service, err := auth.New(auth.Options{Proxy: &auth.Proxy{Secret: "s3cr3t of the proxy", Mapping: auth.ProxyMapping}})
	require.NoError(t, err)
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{Page: page.Handler(), Auth: service, SignIn: service})
	tab := browser.Open(w.server.URL)
	tab.Await(`document.querySelector("#sign-in").innerText.includes("Sign in at the proxy of this gateway")`)
	require.Empty(t, visibleIDs(tab, "#provider, #with-token"))
}

func TestThePageOfAGatewayWithoutAuthenticationShowsNobody(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hello"}))
	require.Empty(t, visibleIDs(tab, "#person, #sign-in"))
}

func TestScreenshotsOfSigningIn(t *testing.T) {
	if !*screenshots {
		t.Skip("screenshot tests, run with -screenshots")
	}
	browser := browsertest.Start(t)
	service, err := auth.New(auth.Options{
		OIDC:   auth.NewOIDC(auth.OIDCOptions{Issuer: "https://provider.example", ClientID: "chronicle", Mapping: auth.OIDCMapping}),
		Tokens: auth.OpenTokens(auth.TokenFile(filepath.Join(t.TempDir(), "tokens.jsonl")), slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	w := serve(t, fakeClient{log: newLog()}, gateway.Options{Page: page.Handler(), Auth: service, SignIn: service})
	tab := browser.Open(w.server.URL)
	tab.Await(`!document.querySelector("#sign-in").hidden`)
	tab.Do(`document.activeElement.blur()`)
	tab.As(browsertest.Look{Width: 800, Height: 520})
	tab.Screenshot(filepath.Join("..", "docs", "images", "page-sign-in.png"))
}
